"""Tells a gang's story: which members are bound, for which a node is held and how long, and which have no node.

Reads what the plugins and the cache know anyway. Never decides anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from podium.binder import WaitingPods
from podium.cluster.pod_groups import PodGroupState
from podium.engine.gang_story import (
    COSCHEDULING,
    UPSTREAM,
    GangStory,
    coscheduling_in,
    longest_wait_s,
    no_group,
    no_size,
    too_few,
)
from podium.framework.profile.runtime import Framework
from podium.objects.core import Pod
from podium.objects.coscheduling import gang_of
from podium.objects.pod_groups import GANG_TIMEOUT_S, PodGroup, group_of

LastMessage = Callable[[Pod], str]


class States(Protocol):
    """The pods of each group."""

    def state(self, key: str) -> PodGroupState | None:
        """Return the pods of the group, or None if none is known."""


class Groups(Protocol):
    """The PodGroups."""

    def get(self, key: str) -> PodGroup | None:
        """Return the group with that key."""


class GangStories:
    """Tells the stories of gangs.

    Args:
        frameworks: the profiles by scheduler name, as they are now.
        states: the pods of groups that pods name in their specs, and `groups` these groups; None without the gate.
        assumed_pod: the pod with that uid as it counts on a node.
    """

    def __init__(
        self,
        frameworks: Callable[[], Mapping[str, Framework]],
        states: States | None,
        groups: Groups | None,
        waiting: WaitingPods,
        assumed_pod: Callable[[str], Pod | None],
    ) -> None:
        self._frameworks = frameworks
        self._states = states
        self._groups = groups
        self._waiting = waiting
        self._assumed = assumed_pod

    def story_of(self, pod: Pod, last_message: LastMessage) -> GangStory | None:
        """Return the story of the pod's gang, or None if it is in none that podium keeps together."""
        framework = self._frameworks().get(pod.spec.scheduler_name)
        key = group_of(pod)
        if key is not None and self._states is not None and self._groups is not None:
            return self._of_group(key, self._states, self._groups, last_message)
        plugin = None if framework is None else coscheduling_in(framework)
        key = gang_of(pod)
        if key is None or plugin is None:
            return None
        gang, spec = plugin.gangs.get(key), plugin.gangs.spec_of(key, pod)
        if spec is None:
            problem = no_size(key)
            return self._story(key, COSCHEDULING, 0, gang.members.values(), 0.0, problem, last_message)
        problem = spec.problem or too_few(len(gang.members), spec.min_member)
        wait_s = longest_wait_s(plugin, spec)
        return self._story(key, COSCHEDULING, spec.min_member, gang.members.values(), wait_s, problem, last_message)

    def _of_group(self, key: str, states: States, groups: Groups, last_message: LastMessage) -> GangStory | None:
        group, state = groups.get(key), states.state(key) or PodGroupState()
        members = (*state.scheduled(), *state.unscheduled.values())
        if group is None:
            problem = no_group(key)
            return self._story(key, UPSTREAM, len(state), members, GANG_TIMEOUT_S, problem, last_message)
        if group.min_count is None:
            return None
        problem = too_few(len(state), group.min_count)
        return self._story(key, UPSTREAM, group.min_count, members, GANG_TIMEOUT_S, problem, last_message)

    def _story(
        self,
        key: str,
        api: str,
        needed_count: int,
        members: Iterable[Pod],
        wait_s: float,
        problem: str,
        last_message: LastMessage,
    ) -> GangStory:
        node_names: dict[str, str] = {}
        held_nodes: dict[str, str] = {}
        lacking: dict[str, str] = {}
        left_s: list[float] = []
        for pod in sorted(members, key=lambda member: member.key):
            waiting, assumed_pod = self._waiting.get(pod.uid), self._assumed(pod.uid)
            if waiting is not None:
                held_nodes[pod.key] = waiting.node_name
                left_s.append(waiting.left_s)
            elif assumed_pod is not None and assumed_pod.node_name:
                node_names[pod.key] = assumed_pod.node_name
            else:
                lacking[pod.key] = last_message(pod)
        return GangStory(
            key,
            api,
            needed_count,
            node_names,
            {},
            lacking,
            wait_s=wait_s,
            left_s=min(left_s, default=None),
            held=held_nodes,
            holds_nodes=api == COSCHEDULING or bool(held_nodes),
            problem=problem,
        )
