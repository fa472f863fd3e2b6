"""Answers recorded queues with pod groups: all pods enter the queue, then the first is tried until none is active.

No pod returns from backoff, and bindings and evictions happen at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final

from msgspec.structs import replace

from podium.cluster import Cache, pod_usage_in
from podium.config import KubeSchedulerConfiguration, PodGroupRules
from podium.engine.errors import ClusterError
from podium.engine.evaluation import as_status
from podium.engine.group_cycle import GroupCycle
from podium.engine.group_decisions import GroupDecision, MemberDecision, RejectedWithGroup
from podium.engine.loose_group_cycle import LooseGroupCycle
from podium.engine.offline import OfflineHandle
from podium.engine.placing import Engine
from podium.engine.plugin_writes import carry_out, writes_before_binding
from podium.engine.pod_group_cycle import PodGroupCycle
from podium.engine.store import LATER_THAN_ALL_S, ObjectStore
from podium.framework.contract.cluster_event import ActionType, ClusterEvent
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.queued_pod import QueuedPodGroupInfo, QueuedPodInfo
from podium.framework.contract.status import demand_status
from podium.framework.contract.steps import run_unasked
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.diagnosis import rejected_on
from podium.framework.cycle.schedule import DoesNotFit, Failed, Suggested
from podium.framework.profile.observer import Observer
from podium.framework.profile.runtime import Framework
from podium.lib.clock import ManualClock
from podium.objects.core import Node, Pod, PodCondition
from podium.objects.errors import FieldError
from podium.objects.pod_groups import group_of
from podium.objects.resource_types import NODES, POD_GROUPS, PODS
from podium.queues import Nominator, QueuedPodGroups, QueueProfile, QueueState, SchedulingQueue, build_hint_map

_BETWEEN_PODS_S: Final = 0.001


class PodGroupQueue:
    """A cluster with a queue of pods.

    Args:
        pods: the pods that enter the queue, in this order.
    """

    def __init__(
        self,
        config: KubeSchedulerConfiguration,
        rules: PodGroupRules,
        store: ObjectStore,
        classes: Mapping[str, type[Plugin]],
        pods: Sequence[Pod],
    ) -> None:
        self._store = store
        self._rules = rules
        self._groups = QueuedPodGroups(rules)
        self._clock = ManualClock(LATER_THAN_ALL_S)
        self._cache = Cache(_refuse, pod_usage_in(config.release), pod_groups=self._groups.states)
        self._lookup: dict[str, Pod] = {pod.key: pod for pod in pods}
        self._nominator = Nominator(self._lookup.get)
        handle = OfflineHandle(
            self._clock,
            Random(1),
            self._nominator,
            self._cache.snapshot,
            store.lister,
            pod_groups=self._groups,
            release=config.release,
        )
        self._frameworks = {
            profile.scheduler_name: Framework(profile, classes, handle, Observer()) for profile in config.profiles
        }
        self._queue = SchedulingQueue(
            [
                QueueProfile(
                    name, framework.pre_enqueue, build_hint_map(framework.plugins.values(), framework.release.events)
                )
                for name, framework in self._frameworks.items()
            ],
            next(iter(self._frameworks.values())).queue_sort,
            self._clock,
            self._lookup.get,
            wake=lambda: None,
            nominator=self._nominator,
            groups=rules,
            release=config.release,
        )
        self._pod_added = ClusterEvent(config.release.events.unscheduled_pod, ActionType.ADD)
        self._groups.use_queue(self._queue)
        self._engine = Engine(self._cache, self._nominator, config.percentage_of_nodes_to_score)
        self._fill()
        for pod in pods:
            # Time decides the order of equal priorities, so each pod enters a little later than the one before.
            self._add(pod, has_gangs=rules.have_gangs)

    def answer(self) -> dict[str, Any]:
        """Return the `attempts` in order, and in `gated` the pods that never became active."""
        attempts = list(self._attempts())
        gates = {pod.key: self._gate_of(pod) for pod in self._lookup.values() if self._is_gated(pod)}
        return {"attempts": attempts, "gated": gates}

    # ------------------------------------------------------------ the cluster and the queue

    def _fill(self) -> None:
        for group in self._store.objects(POD_GROUPS).values():
            self._queue.put_group(group)
        for node in self._store.objects(NODES).values():
            self._cache.put_node(node)
        for pod in self._store.objects(PODS).values():
            if pod.node_name and pod.key not in self._lookup:
                self._cache.add_pod(pod)

    def _add(self, pod: Pod, *, has_gangs: bool) -> None:
        if pod.spec.scheduler_name not in self._frameworks:
            return
        self._groups.states.put_waiting(pod)
        self._queue.add(pod)
        if has_gangs:
            # The gang's earlier members are gated until the last one has come, which this event tells their plugin.
            self._queue.move_all(self._pod_added, None, pod)
        self._clock.advance(_BETWEEN_PODS_S)

    def _is_gated(self, pod: Pod) -> bool:
        info = self._queue.get(pod)
        is_gated = self._queue.state_of(pod) in (QueueState.GATED, QueueState.INCOMPLETE)
        return is_gated and info is not None and info.initial_attempt_timestamp_s is None

    def _gate_of(self, pod: Pod) -> dict[str, Any]:
        for plugin in self._frameworks[pod.spec.scheduler_name].pre_enqueue:
            status = demand_status(plugin.pre_enqueue(pod))
            if status is not None:
                return as_status(status.by(plugin.name))
        return {}

    # ------------------------------------------------------------ attempts

    def _attempts(self) -> Iterator[dict[str, Any]]:
        while self._queue.statistics().active:
            info = self._queue.pop()
            assert info is not None
            key = info.group.key if isinstance(info, QueuedPodGroupInfo) else group_of(info.pod)
            yield self._try_pod(info) if key is None else self._try_group(key, info)

    def _try_pod(self, info: QueuedPodInfo) -> dict[str, Any]:
        cycle = self._engine.cycle(self._frameworks[info.pod.spec.scheduler_name], info.pod)
        decision = self._engine.decide(cycle)
        post_filter = decision.post_filter if isinstance(decision, DoesNotFit) else None
        answer: dict[str, Any] = {"pods": [self._carry_out(info, cycle, decision)]}
        return answer | self._evict(post_filter.victims if post_filter is not None else ())

    def _try_group(self, key: str, first: QueuedPodInfo) -> dict[str, Any]:
        entry = first if isinstance(first, QueuedPodGroupInfo) else None
        infos = self._groups.pop_with(first, key) if entry is None else tuple(entry.members)
        state, group = self._groups.state(key), self._store.get(POD_GROUPS, key)
        assert state is not None, key
        pods = [info.pod for info in infos]
        kind: type[GroupCycle] = LooseGroupCycle if entry is None else PodGroupCycle
        cycle = kind(self._engine, self._frameworks, self._rules, key, group, pods, state)
        decision = run_unasked(cycle.attempt())
        answer: dict[str, Any] = {"group": key, "pods": []}
        for info, member in zip(infos, decision.members, strict=True):
            answer["pods"].append(self._carry_out(info, member.cycle, member.decision))
        if entry is not None:
            self._queue.end_group_attempt(entry, decision.status_before_help)
        victims = [*decision.victims, *(victim for eviction in decision.evictions for victim in eviction.help.victims)]
        return answer | self._evict(victims) | self._condition(key, decision)

    def _carry_out(self, info: QueuedPodInfo, cycle: Cycle, decision: MemberDecision) -> dict[str, Any]:
        pod = info.pod
        if isinstance(decision, Suggested):
            status = self._engine.place(cycle, decision.node_name).status
            if status is None:
                writes = writes_before_binding(cycle.framework, cycle.state, pod, decision.node_name)
                assert not isinstance(writes, str), writes
                carry_out(self._store, writes)
                self._queue.done(pod.uid)
                self._lookup[pod.key] = pod.on_node(decision.node_name)
                self._cache.add_pod(self._lookup[pod.key])
                return {"pod": pod.key, "node": decision.node_name}
            decision = DoesNotFit(rejected_on(decision.row, status), None) if status.is_rejected else Failed(status)
        return self._put_back(info, decision)

    def _put_back(self, info: QueuedPodInfo, decision: DoesNotFit | Failed | RejectedWithGroup) -> dict[str, Any]:
        pod, nomination, reason = info.pod, "", "Unschedulable"
        # Else plugins of an earlier attempt would count as those that rejected the pod now.
        info.unschedulable_plugins.clear()
        if isinstance(decision, DoesNotFit):
            message = decision.error.message
            info.unschedulable_plugins |= decision.error.diagnosis.unschedulable_plugins
            post_filter = decision.post_filter
            nomination = pod.status.nominated_node_name if post_filter is None else post_filter.nominated_node_name
        else:
            message = decision.status.message
            reason = "Unschedulable" if decision.status.is_rejected else "SchedulerError"
            node_name = decision.nominated_node_name if isinstance(decision, RejectedWithGroup) else ""
            nomination = pod.status.nominated_node_name if node_name is None else node_name
        self._queue.add_unschedulable_if_not_present(info)
        if self._rules.are_entries:
            # Time keeps the order of the pods that a group's attempt leaves over.
            self._clock.advance(_BETWEEN_PODS_S)
        self._nominator.add(pod, nomination)
        answer = {"pod": pod.key, "reason": reason, "message": message}
        return {**answer, "nominated": nomination} if nomination else answer

    def _evict(self, victims: Iterable[Pod]) -> dict[str, Any]:
        keys = sorted({victim.key for victim in victims})
        for victim in {victim.uid: victim for victim in victims}.values():
            self._cache.drop_pod(victim)
        return {"victims": keys} if keys else {}

    def _condition(self, key: str, decision: GroupDecision) -> dict[str, Any]:
        group = self._store.get(POD_GROUPS, key)
        condition = None if group is None else decision.condition(group)
        if group is None or condition is None or condition == group.condition(condition.type):
            return {}
        if self._rules.are_entries:
            # Its next attempt may begin before the scheduler hears of the condition it wrote.
            return {"condition": _as_json(condition)}
        conditions = tuple(existing for existing in group.status.conditions if existing.type != condition.type)
        status = replace(group.status, conditions=(*conditions, condition))
        self._store.put(POD_GROUPS, replace(group, status=status))
        return {"condition": _as_json(condition)}


def _as_json(condition: PodCondition) -> dict[str, str]:
    return {name: getattr(condition, name) for name in ("type", "status", "reason", "message")}


def _refuse(item: Node | Pod, error: FieldError) -> None:
    raise ClusterError(f"{item.key}: {error}") from error
