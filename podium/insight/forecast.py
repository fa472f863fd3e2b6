"""Answers when pods get a node: now, after a preemption, when other pods end, or never.

The cluster is played from now on (`rehearsal`). What gets no node by the last end that an object announces is asked
about in two more worlds: one in which all pods have ended that end by themselves at an unknown time, and one without
all pods that can leave. What is ruled out there on every node (`possible_nodes`) never runs.

Cost: a rehearsal of the cluster's own pending pods, once for a cluster as it is; then an attempt or two for a pod, and
another rehearsal for a pod that comes and may have to wait for an end at a time that is known.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property
from typing import Final

from podium.cluster.affinity_terms import pod_terms
from podium.engine.derivation.control_objects import mapping_at, namespace_of
from podium.engine.derivation.pods import named_pod
from podium.engine.derivation.workload_kinds import templates_in
from podium.engine.gangs import Gang, enforced_gang_of, restrict, try_gang
from podium.engine.manifests import Manifest, resource_of
from podium.engine.placement import Placement
from podium.framework.cycle.search import filter_all
from podium.insight.cluster import Cluster
from podium.insight.fixes import Fixes, fixes_for
from podium.insight.moments import UnclearError, first_place, is_plain
from podium.insight.node_edits import HOSTNAME
from podium.insight.outlook import Outlook, PodOutlook, Verdict
from podium.insight.pod_ends import PodEnd, grace_s, pod_end
from podium.insight.possible_gangs import possible_gang_nodes
from podium.insight.possible_nodes import partners_of, possible_nodes
from podium.insight.rehearsal import Rehearsal, is_movable
from podium.insight.schedulers import scheduler_report
from podium.insight.search_basis import SearchBasis
from podium.insight.steps import Apply, pods_of
from podium.lib.time_limit import UNLIMITED, TimeIsUpError, TimeLimit
from podium.objects.core import Pod
from podium.objects.resource_types import NODES, PODS

_NODES_MAX: Final = 10
_ENDS_MAX: Final = 20
_FIXES_MAX: Final = 3
_PARTNERS_MAX: Final = 10
"""The number of pods to be near, each of which is tried as the last one to end."""
_AT_ONCE_S: Final = 1.0
_COMING_S: Final = 0.1
"""The time from the attempts at the pods that wait to the coming of others."""
_NEVER: Final = "Never"
"""The policy of a pod that preempts nobody."""


class Forecast:
    """What becomes of the pending pods of one cluster. Later changes of the cluster do not matter.

    Args:
        at_s: the time at which it begins, in seconds since the epoch.
        step: objects to apply first.
        has_one_queue: whether the profiles are those of one scheduler; otherwise each stands for a scheduler of its
            own, whose queue has no pods of the others.

    Attributes:
        asked: the pods of these objects.

    Raises:
        TimeIsUpError: the time was over before each pod was tried once.
        ClusterError: the objects cannot be applied.
    """

    def __init__(
        self,
        cluster: Cluster,
        at_s: float,
        limit: TimeLimit = UNLIMITED,
        step: Apply | None = None,
        *,
        has_one_queue: bool = True,
    ) -> None:
        self.cluster = cluster.fork()
        self.at_s = at_s
        self._has_one_queue = has_one_queue
        self._limit = limit
        self._rehearsal = rehearsal = Rehearsal(self.cluster, limit, start_s=at_s)
        self.asked: Sequence[str] = ()
        self._start = self.cluster
        rehearsal.play_queue()
        if step is not None:
            # The pods that wait already have been tried before others come, and their preemptions have begun.
            rehearsal.clock.advance(_COMING_S)
            step.carry_out(rehearsal)
            rehearsal.reconcile()
            self.asked = _pods_in(step, rehearsal.world)
            self._start = rehearsal.world.fork()
            rehearsal.play_queue()
        self._world_now = rehearsal.world.fork()
        self._next_end_s = rehearsal.next_end_s
        self._ahead_of_new = Counter(rehearsal.first_attempts.values())
        self._fixes: dict[int | str, Fixes] = {}
        self.is_partial = False
        try:
            rehearsal.play_ends()
        except TimeIsUpError:
            self.is_partial = limit.is_noticed = True

    def pod(self, key: str) -> Pod | None:
        """Return the pod as it is at the end of the forecast; None if it does not exist then."""
        return self._rehearsal.world.store.get(PODS, key)

    @property
    def refusals(self) -> Sequence[str]:
        """Why the API server refuses pods, for each workload."""
        return [f"{refusal.workload}: {refusal.reason}" for refusal in self._rehearsal.refusals.values()]

    # ------------------------------------------------------------ answers

    def of_pods(self, keys: Sequence[str], *, fix: bool, limit: TimeLimit = UNLIMITED) -> Outlook:
        """Return the outlook of pods of the forecast; for a member of a gang, that of all its waiting members."""
        pods = self._start.store.objects(PODS)
        gang = next((gang for key in keys if (gang := _incomplete_gang(self._start, key)) is not None), None)
        if gang is not None:
            keys = list(dict.fromkeys([*keys, *(pod.key for pod in gang.waiting_members)]))
        running = [(key, pods[key].node_name) for key in keys if self._has_node(key)]
        outlooks = [self._outlook(key, fix=fix, limit=limit) for key in keys if key not in dict(running)]
        return Outlook(
            outlooks,
            self.at_s,
            gang.key if gang is not None else "",
            running,
            self.refusals,
            self._warnings_of(pods[key] for key in keys if key in pods),
            is_partial=self.is_partial,
        )

    def _has_node(self, key: str) -> bool:
        """Return whether the pod has a node already, or comes with one."""
        pod, former = self._start.store.get(PODS, key), self.cluster.store.get(PODS, key)
        if pod is None or not pod.node_name:
            return False
        # What the queue has placed since waited when the question was asked.
        return key not in self._rehearsal.turns or (former is not None and former.node_name == pod.node_name)

    def of_new_pod(self, pod: Pod, *, fix: bool, limit: TimeLimit = UNLIMITED) -> Outlook | None:
        """Return the outlook of a pod that the cluster does not have yet; None if it has to be played."""
        placement = self._attempt_now(pod)
        scheduler = pod.spec.scheduler_name
        ahead = self._ahead_of_new.total() if self._has_one_queue else self._ahead_of_new[scheduler]
        nodes: Sequence[str] | None = None
        if placement.node is not None:
            answer = PodOutlook(pod.key, Verdict.NOW, placement.node, ahead=ahead)
        elif placement.nominated_node is not None and placement.victims:
            by_s = self.at_s + _COMING_S + max(map(grace_s, placement.victims))
            if by_s >= self._next_end_s or pod.priority < self._highest_waiting_priority:
                # Another end may help it before, or another pod take the room: its nomination binds no higher one.
                return None
            victims = [victim.key for victim in placement.victims]
            answer = PodOutlook(
                pod.key,
                Verdict.AFTER_PREEMPTION,
                placement.nominated_node,
                by_s,
                victims,
                ahead=ahead,
                why=placement.message,
            )
        elif self._next_end_s < math.inf and (nodes := self._possible(pod, None)):
            answer_by_moments = self._after_announced_end(pod, nodes, ahead, placement.message)
            if answer_by_moments is None:
                return None
            answer = answer_by_moments
        else:
            answer = self._without_time(pod, ahead, placement.message, nodes, fix=fix, limit=limit)
        is_open = answer.verdict is Verdict.LATER and not answer.ends
        if is_open and self._ends_by_node and self._after_completions.preemptions:
            # What these leave it might take.
            return None
        return Outlook([answer], self.at_s, warnings=self._warnings_of([pod]))

    def _warnings_of(self, pods: Iterable[Pod]) -> Sequence[str]:
        """Return what is doubtful about the pods: whether their schedulers exist, and the nodes that they name."""
        warnings: dict[str, None] = {}
        for pod in pods:
            if not self._has_one_queue and (warning := scheduler_report(self.cluster, pod, "").warning):
                warnings[warning] = None
            if pod.node_name and self.cluster.store.get(NODES, pod.node_name) is None:
                warnings[f"{pod.key}: spec.nodeName: there is no node {pod.node_name}"] = None
        return list(warnings)

    def _after_announced_end(self, pod: Pod, nodes: Sequence[str], ahead: int, why: str) -> PodOutlook | None:
        """Return the outlook of a pod that gets no node now; None if it has to be played.

        Args:
            nodes: those on which it may run.
        """
        world, rehearsal = self._rehearsal.world, self._rehearsal
        if self.is_partial or self._may_preempt(pod) or self._keeps_pods_off or not is_plain(world, pod):
            return None
        newcomers = world.store.objects(PODS).keys() - self._world_now.store.objects(PODS).keys()
        try:
            place = first_place(rehearsal.moments, pod, set(nodes), newcomers)
        except UnclearError:
            return None
        if place is None:
            return self._without_time(pod, ahead, why, nodes, fix=False, limit=UNLIMITED)
        moment, node = place
        causes = [end for end in rehearsal.ends[: moment.end_count] if end.node == node]
        return PodOutlook(pod.key, Verdict.LATER, node, moment.at_s, ends=causes[-_ENDS_MAX:], ahead=ahead)

    def _attempt_now(self, pod: Pod) -> Placement:
        """Make an attempt at the pod in the world as it is now, and take it back.

        The world is kept between questions, and with it what plugins remember of its nodes.
        """
        world = self._world_to_try
        rotation = world.engine_to_ask.rotation
        start = rotation.next_start
        placement = world.place_with_its_claims(pod)
        if placement.node is not None:
            world.undo(placement)
        # So that equal questions have equal answers.
        world.engine_to_ask.rotation.next_start = start
        return placement

    def _may_preempt(self, pod: Pod) -> bool:
        """Return whether there is a pod that this one could preempt by its priority, now or later."""
        return pod.spec.preemption_policy != _NEVER and pod.priority > self._lowest_priority

    @cached_property
    def _lowest_priority(self) -> int:
        """The lowest priority of a pod that a later one may find on a node."""
        pods = (*self._world_now.pods, *self._rehearsal.world.pods)
        return min((pod.priority for pod in pods), default=0)

    @cached_property
    def _highest_waiting_priority(self) -> float:
        """The highest priority of a pod that has been tried and waits; minus infinity without one."""
        pods = map(self._world_now.store.objects(PODS).get, self._rehearsal.first_attempts)
        return max((pod.priority for pod in pods if pod is not None and not pod.node_name), default=-math.inf)

    @cached_property
    def _keeps_pods_off(self) -> bool:
        """True if a pod that a later one may find on a node has required anti-affinity."""
        pods = (*self._world_now.pods, *self._rehearsal.world.pods)
        return any(pod_terms(pod).required_anti_affinity for pod in pods)

    @cached_property
    def _world_to_try(self) -> Cluster:
        return self._world_now.fork()

    def _outlook(self, key: str, *, fix: bool, limit: TimeLimit) -> PodOutlook:
        rehearsal = self._rehearsal
        ahead, why, turn = self._ahead(key), rehearsal.why.get(key, ""), rehearsal.turns.get(key)
        if turn is None:
            pod = self.pod(key)
            if pod is None:
                return PodOutlook(key, Verdict.NEVER, ahead=ahead, why="it is deleted before it gets a node")
            return self._without_time(pod, ahead, why, fix=fix, limit=limit)
        if not turn.end_count:
            return PodOutlook(key, Verdict.NOW, turn.node, ahead=ahead)
        preemption = rehearsal.preemptions.get(key)
        ends = rehearsal.ends[: turn.end_count]
        if preemption is not None and {end.pod for end in ends} & set(preemption.victims):
            return PodOutlook(key, Verdict.AFTER_PREEMPTION, turn.node, turn.at_s, preemption.victims, ahead=ahead)
        # Those that made room on its node; in its absence the last ones, which opened another way.
        causes = [end for end in ends if end.node == turn.node] or [
            end for end in ends if end.at_s is not None and turn.at_s - end.at_s < _AT_ONCE_S
        ]
        return PodOutlook(key, Verdict.LATER, turn.node, turn.at_s, ends=causes[-_ENDS_MAX:], ahead=ahead)

    def _ahead(self, key: str) -> int:
        """Return the number of pods of its queue that are tried before a pod; 0 if the pod itself is not."""
        schedulers = self._rehearsal.first_attempts
        if key not in schedulers:
            return 0
        ahead = itertools.takewhile(lambda item: item[0] != key, schedulers.items())
        return sum(self._has_one_queue or scheduler == schedulers[key] for _, scheduler in ahead)

    # ------------------------------------------------------------ pods for which no object gives a time

    def _without_time(
        self, pod: Pod, ahead: int, why: str, nodes: Sequence[str] | None = None, *, fix: bool, limit: TimeLimit
    ) -> PodOutlook:
        """Return the outlook of a pod for which no object gives a time.

        Args:
            nodes: those that are not ruled out; None if they are still to be found.
        """
        if pod.is_terminating:
            return PodOutlook(pod.key, Verdict.NEVER, ahead=ahead, why="it is being deleted")
        if gates := self._world_now.gates_of(pod):
            return PodOutlook(pod.key, Verdict.NEVER, ahead=ahead, why="; ".join(gate.message for gate in gates))
        gang = _incomplete_gang(self._rehearsal.world, pod.key)
        if gang is not None and gang.problem:
            return PodOutlook(pod.key, Verdict.NEVER, ahead=ahead, why=gang.problem)
        if self._ends_by_node and (nodes_after_ends := self._after_ends(pod, gang)):
            # With none on its nodes, ends elsewhere open them: of pods that keep it off, say.
            ends_by_node = [self._ends_by_node.get(node, ()) for node in nodes_after_ends]
            groups = ends_by_node if any(ends_by_node) else self._ends_by_node.values()
            ends = [end for group in groups for end in group]
            return PodOutlook(
                pod.key,
                Verdict.LATER,
                ends=ends[:_ENDS_MAX],
                nodes=nodes_after_ends[:_NODES_MAX],
                is_contended=self._is_contended(pod),
                ahead=ahead,
                why=why,
            )
        if nodes := self._possible(pod, gang) if nodes is None else nodes:
            return PodOutlook(pod.key, Verdict.LATER, nodes=nodes[:_NODES_MAX], ahead=ahead, why=why)
        return PodOutlook(
            pod.key, Verdict.NEVER, ahead=ahead, why=why, fixes=self._fixes_of(pod, gang, limit) if fix else None
        )

    def _after_ends(self, pod: Pod, gang: Gang | None) -> Sequence[str]:
        """Return the nodes on which the pod fits, or its gang, once pods have ended that end by themselves."""
        nodes = self._fitting(self._without_finite, pod, gang)
        if gang is None:
            # Or with a preemption, if some leave before others, or others take the room.
            nodes = list(dict.fromkeys((*nodes, *self._nodes_to_preempt_on(self._without_finite, pod))))
        # Others that are tried then may preempt pods that this one could not.
        if (turn := self._after_completions.turns.get(pod.key)) is not None:
            nodes = list(dict.fromkeys((*nodes, turn.node)))
        elif self._loses_partners(pod):
            return ()
        # Those that the pod must be near may come only then.
        if nodes or (nodes := self._fitting(self._refilled_without(pod), pod, gang)):
            return nodes
        # Or be the last to end.
        partners = {partner.key for partner in partners_of(self._rehearsal.world, pod)} & self._finite
        names: dict[str, None] = {}
        for stay in [partners, *({partner} for partner in sorted(partners)[:_PARTNERS_MAX])] if partners else ():
            names |= dict.fromkeys(self._fitting(self._world_after(self._finite - stay), pod, gang))
        return list(names)

    def _is_contended(self, pod: Pod) -> bool:
        """Return whether others take the room, once pods have ended by themselves."""
        rehearsal = self._after_completions
        if self.pod(pod.key) is not None:
            return rehearsal.world.store.get(PODS, pod.key) is not None and pod.key not in rehearsal.turns
        # It was not played: the others have had their turns there, and go before it unless it is more important.
        return pod.priority <= self._highest_waiting_priority and not self._fitting(rehearsal.world, pod, None)

    def _loses_partners(self, pod: Pod) -> bool:
        """Return whether others preempt all that the pod has to be near, once pods have ended by themselves."""
        completions = self._after_completions
        victims = {preemption.pod for preemption in completions.preempted}
        partners = [item for world in (self._rehearsal.world, completions.world) for item in partners_of(world, pod)]
        present_keys = {item.key for item in partners if item.node_name or item.key in completions.turns}
        return bool(present_keys) and present_keys <= victims

    def _nodes_to_preempt_on(self, world: Cluster, pod: Pod) -> Sequence[str]:
        """Return nodes on which a preemption gives room to the pod, one at a time; at most `_NODES_MAX`."""
        if not self._may_preempt(pod):
            return ()
        nodes: list[str] = []
        for name in self._possible(pod, None)[:_NODES_MAX]:
            placement = world.fork().place_with_its_claims(restrict(pod, {HOSTNAME: name}))
            if placement.nominated_node is not None and placement.victims:
                nodes.append(placement.nominated_node)
        return nodes

    def _refilled_without(self, pod: Pod) -> Cluster:
        """Return the world after these ends in which the other waiting pods have had their attempts."""
        world = self._refilled_world
        placed_pod = world.store.get(PODS, pod.key)
        if placed_pod is None or not placed_pod.node_name:
            return world
        world = world.fork()
        world.drop(PODS, placed_pod)
        return world

    def _fitting(self, world: Cluster, pod: Pod, gang: Gang | None) -> Sequence[str]:
        """Return the nodes on which the pod fits, or with its gang."""
        if gang is not None:
            trial = try_gang(world, gang)
            is_enough = pod.key in trial.nodes and gang.starts_in(trial)
            return list(dict.fromkeys(trial.nodes.values())) if is_enough else ()
        cycle = world.engine_to_ask.cycle(world.framework_for(pod), pod)
        return [cycle.snapshot.name(row) for row in filter_all(cycle).rows.tolist()] if len(cycle.snapshot) else ()

    def _possible(self, pod: Pod, gang: Gang | None) -> Sequence[str]:
        if gang is not None:
            return possible_gang_nodes(self._rehearsal.world, self._empty_world, gang)
        return possible_nodes(self._rehearsal.world, self._empty_world, pod)

    @cached_property
    def _ends_by_node(self) -> Mapping[str, Sequence[PodEnd]]:
        """The ends at unknown times, by node."""
        ends: dict[str, list[PodEnd]] = {}
        for pod in self._rehearsal.world.pods:
            if pod.node_name and (end := pod_end(pod, self.at_s)) is not None:
                ends.setdefault(pod.node_name, []).append(end)
        return ends

    @cached_property
    def _finite(self) -> set[str]:
        """The keys of the pods that end by themselves."""
        return {end.pod for ends in self._ends_by_node.values() for end in ends}

    def _world_after(self, ends: AbstractSet[str]) -> Cluster:
        """Return the world after the ends of these pods."""
        return self._rehearsal.world_without(lambda pod: pod.key in ends)

    @cached_property
    def _without_finite(self) -> Cluster:
        """The world after the end of all pods that end by themselves."""
        return self._world_after(self._finite)

    @cached_property
    def _after_completions(self) -> Rehearsal:
        """What comes of the waiting pods when these pods end, played until none is left or the time is over."""
        former = self._rehearsal
        rehearsal = Rehearsal(former.world, self._limit, start_s=former.clock.now())
        try:
            rehearsal.play_completions()
        except TimeIsUpError:
            self._limit.is_noticed = True
        return rehearsal

    @cached_property
    def _refilled_world(self) -> Cluster:
        """The world after these ends and an attempt at each waiting pod, in the order of the queue."""
        world = self._without_finite.fork()
        order = {key: number for number, key in enumerate(self._rehearsal.first_attempts)}
        waiting_pods = [pod for pod in world.store.objects(PODS).values() if not pod.node_name]
        for pod in sorted(waiting_pods, key=lambda pod: (-pod.priority, order.get(pod.key, len(order)))):
            if not pod.is_terminating and enforced_gang_of(world, pod) is None:
                world.place_without_preemption(pod)
        return world

    @cached_property
    def _empty_world(self) -> Cluster:
        """The world without the pods that can leave."""
        return self._rehearsal.world_without(lambda pod: not pod.node_name or is_movable(pod))

    def _fixes_of(self, pod: Pod, gang: Gang | None, limit: TimeLimit) -> Fixes:
        # Nothing keeps the spec of a pod alive that only a question has, so that another one may get its id.
        if self.pod(pod.key) is not pod:
            return self._search(pod, limit)
        # The fixes of a gang are those of each member. Otherwise by id, since replicas share their spec, which the
        # world keeps alive.
        subject = id(pod.spec) if gang is None else gang.key
        if subject not in self._fixes:
            fixes = self._search(pod, limit)
            if fixes.is_partial:
                # Another question may have more time.
                return fixes
            self._fixes[subject] = fixes
        return replace(self._fixes[subject], pod=pod.key)

    def _search(self, pod: Pod, limit: TimeLimit) -> Fixes:
        world, pod = self._world_now.asked(pod)
        basis = self._basis if world is self._world_now else None
        return fixes_for(world, pod, _FIXES_MAX, limit, basis=basis)

    @cached_property
    def _basis(self) -> SearchBasis:
        return SearchBasis(self._world_now)


def _incomplete_gang(world: Cluster, key: str) -> Gang | None:
    """Return the gang of the pod, unless it has its minimum already."""
    pod = world.store.get(PODS, key)
    gang = None if pod is None else enforced_gang_of(world, pod)
    return None if gang is None or len(gang.placed_members) >= gang.min_count else gang


def _pods_in(step: Apply, world: Cluster) -> Sequence[str]:
    """Return the keys of the pods that are applied, and of those of the workloads that are."""
    keys: dict[str, None] = {}
    for number, item in enumerate(step.objects):
        manifest: Manifest = item.manifest
        name = str(mapping_at(named_pod(manifest, number), "metadata").get("name") or "")
        if resource_of(manifest) is PODS:
            keys[f"{namespace_of(manifest)}/{name}"] = None
        elif templates_in(manifest):
            keys |= dict.fromkeys(
                pod.key for pod in pods_of(world, namespace_of(manifest), str(manifest["kind"]), name)
            )
    return list(keys)
