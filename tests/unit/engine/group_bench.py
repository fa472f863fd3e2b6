"""A cluster with one group whose pods wait, for both cycles of pod groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar

from podium.cluster import Cache
from podium.cluster.pod_groups import PodGroupState, PodGroupStates
from podium.config import PodGroupRules, Release, default_configuration, parse_feature_gates
from podium.engine.configurations import with_plugins
from podium.engine.group_cycle import GroupCycle
from podium.engine.group_decisions import GroupDecision, MemberDecision
from podium.engine.offline import OfflineHandle
from podium.engine.placing import Engine
from podium.engine.store import ObjectStore
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.steps import run_unasked
from podium.framework.cycle.schedule import DoesNotFit, Suggested
from podium.framework.profile.observer import Observer
from podium.framework.profile.runtime import Framework
from podium.lib.clock import ManualClock
from podium.objects.core import Node, Pod
from podium.objects.pod_groups import PodGroup
from podium.objects.resource_types import POD_GROUPS, KubeObject, ResourceType
from podium.plugins import IN_TREE
from podium.queues import Nominator
from tests.builders import cache_of, pod, pod_group


@dataclass
class Groups:
    rules: PodGroupRules
    states: PodGroupStates = field(default_factory=PodGroupStates)

    def state(self, key: str) -> PodGroupState | None:
        return self.states.get(key)

    def scheduled(self) -> Iterable[Pod]:
        return self.states.scheduled()

    def activate(self, pods: Iterable[Pod]) -> None:
        """Nothing is queued here."""


class GroupBench:
    """A cluster and a group whose pods wait."""

    release: ClassVar[Release]
    cycle: ClassVar[type[GroupCycle]]
    gates: ClassVar[str]

    def __init__(
        self,
        pods: Sequence[Pod],
        *items: Node | Pod,
        group: PodGroup | None = None,
        gates: str = "",
        plugins: Sequence[type[Plugin]] = (),
        objects: Sequence[tuple[ResourceType[Any], KubeObject]] = (),
    ) -> None:
        self.pods, self.group = pods, group or pod_group("gang", min_count=len(pods))
        self.has_group = True
        self.nominator = Nominator({pod.key: pod for pod in pods}.get)
        self.cache: Cache = cache_of(*items)
        parsed = parse_feature_gates([gates or self.gates], self.release)
        assert parsed.pod_groups is not None
        self.rules = parsed.pod_groups
        groups = Groups(self.rules)
        self.store = ObjectStore([(POD_GROUPS, self.group), *objects])
        for waiting_pod in pods:
            groups.states.put_waiting(waiting_pod)
        for assigned_pod in (item for item in items if isinstance(item, Pod)):
            groups.states.put_assigned(assigned_pod)
        self.state = groups.states.get("default/gang")
        handle = OfflineHandle(
            ManualClock(), Random(1), self.nominator, self.cache.snapshot,
            self.store.lister, pod_groups=groups, release=self.release,
        )  # fmt: skip
        classes = {**IN_TREE, **{plugin.name: plugin for plugin in plugins}}
        (profile,) = with_plugins(default_configuration(parsed), plugins).profiles
        self.framework = Framework(profile, classes, handle, Observer())
        self.engine = Engine(self.cache, self.nominator, 0)

    def decide(self) -> GroupDecision:
        frameworks = dict.fromkeys({pod.spec.scheduler_name for pod in self.pods}, self.framework)
        assert self.state is not None
        group = self.group if self.has_group else None
        cycle = self.cycle(self.engine, frameworks, self.rules, "default/gang", group, self.pods, self.state)
        return run_unasked(cycle.attempt())


def members(count: int, cpu: str = "1", **fields: Any) -> list[Pod]:
    return [pod(f"m{at}", group="gang", cpu=cpu, **fields) for at in range(count)]


def nodes_of(decision: GroupDecision) -> list[str | None]:
    return [
        member.decision.node_name if isinstance(member.decision, Suggested) else None for member in decision.members
    ]


def message(decision: MemberDecision) -> str:
    if isinstance(decision, DoesNotFit):
        return decision.error.message
    return "" if isinstance(decision, Suggested) else decision.status.message
