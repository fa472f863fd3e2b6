"""DefaultPreemption: for a pod that fits on no node, or for a group, evict pods of lower priority to make room.

Runs at: PreEnqueue (the pod waits while its preemption, or its group's, runs), PostFilter, PodGroupPostFilter.
Verdict: PreEnqueue: UnschedulableAndUnresolvable. PostFilter: Success with the node and the victims; Unschedulable if
preemption does not help or the pod must not preempt; Error if no candidate was found and a dry run failed, or if an
extender failed. PodGroupPostFilter: the same for the group, and UnschedulableAndUnresolvable if there are no victims.
Requeue: a pod is deleted. This hint always returns Skip; the plugins that rejected the pod requeue it.
Cost: some array operations over the nodes that an earlier pod of the same spec has tried, about ten microseconds for
each of hundreds tried in parallel, and 100 if a filter depends on the pods themselves: then each node costs a clone of
the plugins' state, and one pass of the filters for each pod of lower priority.
Source: kubernetes v1.36.2 and v1.37.2, pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go,
framework/preemption/preemption.go and podgrouppreemption.go; KEP-4832.
Differs: pods that the handle protects are never victims (in the daemon those of other schedulers, by default), and pods
that have preempted on a node in a loop may not preempt there for a while. The pod is not read again first: the daemon
carries the preemption out later and drops it if the pod has been deleted by then. See also
`podium.framework.preemption.candidates`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from podium.cluster import Snapshot
from podium.config import Extender
from podium.config.args import DefaultPreemptionArgs
from podium.framework import contract as fwk
from podium.framework.preemption.candidates import Budgets, Importance, errors_of, is_leaving
from podium.framework.preemption.dry_run import dry_run_preemption
from podium.framework.preemption.lowest_priorities import LowestPriorities
from podium.framework.preemption.pod_groups import (
    answer_without_victims,
    preempt_for_group,
    preempt_for_loose_group,
    priority_of,
)
from podium.framework.preemption.unit_victims import UnitsByNode
from podium.framework.preemption.victim_cache import VictimCache
from podium.objects.core import Pod
from podium.objects.pod_groups import PodGroup, group_of
from podium.objects.resource_types import POD_DISRUPTION_BUDGETS, POD_GROUPS
from podium.plugins.shared.preemption_outcomes import best_of, no_help
from podium.plugins.shared.preemption_rows import rows_to_try

_PREFIX: Final = "preemption: "
_GROUP_PREFIX: Final = "pod group preemption: "
_WAITING: Final = fwk.unresolvable("waiting for the preemption for this pod to be finished")
_GROUP_WAITING: Final = fwk.unresolvable("waiting for the preemption for this pod group to be finished")
_NO_GROUP: Final = fwk.unschedulable(f"{_PREFIX}pod group for pod not found")
_PLACED_BY_TOPOLOGY: Final = fwk.unschedulable(
    f"{_PREFIX}not eligible due to placement-based pod group scheduling limitation"
)
_WITH_ITS_GROUP: Final = fwk.unschedulable(f"{_PREFIX}not eligible due to workload aware preemption enabled")
_NEVER: Final = fwk.unschedulable(f"{_PREFIX}not eligible due to preemptionPolicy=Never.")
_VICTIMS_LEAVING: Final = fwk.unschedulable(f"{_PREFIX}not eligible due to a terminating pod on the nominated node.")
_HELD_BACK: Final = fwk.unschedulable(f"{_PREFIX}not eligible: its victims keep coming back.")
_COME_BACK: Final = fwk.unschedulable("Preemption is held back: victims keep coming back")


class DefaultPreemption(fwk.PreEnqueuePlugin, fwk.AskingPostFilterPlugin, fwk.PodGroupPostFilterPlugin):
    """Finds the node where preemption costs least, or the pods whose eviction costs least for a group."""

    def __init__(self, args: DefaultPreemptionArgs, handle: fwk.Handle) -> None:
        self._events = handle.release.events
        self._rules = handle.release.preemption
        self._percentage = args.min_candidate_nodes_percentage
        self._absolute = args.min_candidate_nodes_absolute
        self._clock = handle.clock
        self._random = handle.random
        self._preemptions = handle.preemptions
        self._budgets = handle.lister(POD_DISRUPTION_BUDGETS)
        self._known = VictimCache()
        self._lowest = LowestPriorities()
        self._states = handle.pod_groups
        rules = None if handle.pod_groups is None else handle.pod_groups.rules
        self._by_topology = rules is not None and rules.are_placed_by_topology
        self._as_groups = rules is not None and rules.are_preempted_for
        self._has_entries = rules is not None and rules.are_entries
        self._groups = handle.lister(POD_GROUPS) if self._by_topology or self._as_groups else None

    def pre_enqueue(self, pod: Pod) -> fwk.Status | None:
        """Return success, unless the evictions for the pod, or for its group, are still being requested."""
        if self._as_groups and (key := group_of(pod)) is not None:
            group = self._group(key)
            return _GROUP_WAITING if group is not None and self._preemptions.is_preempting(group.metadata.uid) else None
        return _WAITING if self._preemptions.is_preempting(pod.uid) else None

    def post_filter_asking(
        self,
        state: fwk.CycleState,
        pod: Pod,
        snapshot: Snapshot,
        filtered_nodes: fwk.FilteredNodes,
        extenders: Sequence[Extender],
    ) -> fwk.Steps[tuple[fwk.PostFilterResult | None, fwk.Status | None]]:
        """Return success with a node and victims, Unschedulable, or Error."""
        self._preemptions.attempted()
        if self._groups is not None and not self._has_entries and (refusal := self._refused_in_group(pod)) is not None:
            return None, refusal
        end_search = self._preemptions.begin_search("pod")
        result, status = yield from self._make_room(pod, snapshot, filtered_nodes, extenders)
        end_search(_label(status))
        return result, status

    def _make_room(
        self, pod: Pod, snapshot: Snapshot, filtered_nodes: fwk.FilteredNodes, extenders: Sequence[Extender]
    ) -> fwk.Steps[tuple[fwk.PostFilterResult | None, fwk.Status | None]]:
        if pod.spec.preemption_policy == "Never":
            return None, _NEVER
        if self._waits_for_victims(pod, snapshot, filtered_nodes):
            return None, _VICTIMS_LEAVING
        # Where a rejection cannot be resolved, evicting pods would not help.
        count = filtered_nodes.count(fwk.Code.UNSCHEDULABLE)
        if not count:
            return no_help(snapshot, {}, _PREFIX)
        rows = held_back = snapshot.order[:0]
        loops_on = self._preemptions.held_back_from(pod)
        has_lower = self._lowest.of(snapshot) < pod.priority
        units = self._units(snapshot) if (rows_of_groups := self._rows_of_groups(snapshot)) else None
        if units is not None:
            for group_row in rows_of_groups:
                has_lower[group_row] = bool(units.below(pod, group_row))
        # In most clusters no node has a victim, and then the nodes need not be listed.
        if loops_on or np.count_nonzero(has_lower):
            rows, held_back = rows_to_try(filtered_nodes, snapshot, loops_on)
            count = len(rows)
        # All nodes with victims are held back, to break a loop.
        if not count:
            return None, _HELD_BACK
        budgets = Budgets(self._budgets.list(), self._rules)
        importance = Importance(self._clock.now(), self._is_protected(budgets))
        # Start at a random row, so that the same nodes are not always tried first.
        start = self._random.randrange(count)
        rotated_rows = np.concatenate((rows[start:], rows[:start]))
        have_lower = has_lower[rotated_rows]
        outcome = yield from dry_run_preemption(
            filtered_nodes,
            rotated_rows[have_lower],
            self._candidates_max(count),
            pod,
            budgets,
            importance,
            self._known,
            units,
        )
        if outcome.candidates:
            tells_node = self._rules.tell_node
            return (
                yield from best_of(
                    outcome.candidates, pod, snapshot, extenders, importance, _PREFIX, tells_node=tells_node
                )
            )
        # As upstream: an error of one node counts only if no other node has candidates.
        if errors := errors_of(outcome.rejections.values()):
            return None, fwk.error_status(_PREFIX + errors)
        rejections = outcome.rejections | dict.fromkeys(held_back.tolist(), _COME_BACK)
        without_victims = count - int(np.count_nonzero(have_lower))
        return no_help(snapshot, rejections, _PREFIX, without_victims)

    def _rows_of_groups(self, snapshot: Snapshot) -> set[int]:
        """Return the rows with pods of groups, which are evicted by the priority of their group, or as a whole."""
        if self._states is None or not self._has_entries:
            return set()
        rows = (snapshot.row_of.get(pod.node_name) for pod in self._states.scheduled())
        return {row for row in rows if row is not None}

    def _units(self, snapshot: Snapshot) -> UnitsByNode:
        is_protected = self._is_protected(Budgets(self._budgets.list(), self._rules))
        return UnitsByNode(snapshot, self._group, Importance(self._clock.now()), is_protected)

    def _refused_in_group(self, pod: Pod) -> fwk.Status | None:
        """Return why no room is made for a pod of a group, while its group is tried."""
        key = group_of(pod)
        if key is None:
            return None
        if self._by_topology:
            group = self._group(key)
            if group is None:
                return _NO_GROUP
            # As upstream: a group that is placed by topology is not preempted for pod by pod.
            if group.spec.scheduling_constraints is not None:
                return _PLACED_BY_TOPOLOGY
        return _WITH_ITS_GROUP if self._as_groups else None

    def pod_group_post_filter(self, unscheduled: fwk.UnscheduledGroup) -> fwk.Steps[fwk.GroupHelp | fwk.Status]:
        """Return the victims, or Unschedulable."""
        budgets = Budgets(self._budgets.list(), self._rules)
        importance, is_protected = Importance(self._clock.now()), self._is_protected(budgets)
        if not self._has_entries:
            return (yield from preempt_for_loose_group(unscheduled, self._group, budgets, importance, is_protected))
        answer = answer_without_victims(unscheduled, self._group)
        if answer is None:
            end_search = self._preemptions.begin_search("podgroup")
            answer = yield from preempt_for_group(unscheduled, self._group, budgets, importance, is_protected)
            end_search(_label(answer))
        self._preemptions.attempted_for_group(_label(answer))
        if isinstance(answer, fwk.GroupHelp):
            return replace(answer, message=f"{_GROUP_PREFIX}{answer.message}")
        return fwk.Status(answer.code, (f"{_GROUP_PREFIX}{answer.message}",))

    def _priority_of(self, pod: Pod) -> int:
        """Return the priority by which the pod is evicted: that of its group, if groups are entries of the queue."""
        return priority_of(pod, self._group) if self._has_entries else pod.priority

    def _group(self, key: str) -> PodGroup | None:
        return None if self._groups is None else self._groups.get(key)

    def _is_protected(self, budgets: Budgets) -> Callable[[Pod], bool]:
        """Return the test for pods that must not be victims."""
        is_protected = self._preemptions.is_protected
        if not budgets.has_unreadable:
            return is_protected
        return lambda victim: is_protected(victim) or budgets.forbid(victim)

    def _waits_for_victims(self, pod: Pod, snapshot: Snapshot, filtered_nodes: fwk.FilteredNodes) -> bool:
        """Return whether earlier victims still terminate on the nominated node, and the pod may fit there then."""
        row = snapshot.row_of.get(pod.status.nominated_node_name)
        # Deleting pods will never make the node fit, so waiting for that is in vain.
        if row is None or filtered_nodes.status(row).code is fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return False
        return any(
            is_leaving(pod_on_node) and self._priority_of(pod_on_node) < pod.priority
            for pod_on_node in snapshot.node(row).pods
        )

    def _candidates_max(self, node_count: int) -> int:
        """Return how many candidates a search looks for before it stops."""
        # As upstream: a share of the nodes, but at least so many, so that small clusters are searched in full.
        return min(max(node_count * self._percentage // 100, self._absolute), node_count)

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register deleted pods, so that PreEnqueue runs again for a pod that waits for its preemption."""
        assigned_pods = self._events.assigned_pods
        return (fwk.on(assigned_pods, fwk.ActionType.DELETE, hint=self.after_pod_delete, scope=fwk.HintScope.SPEC),)

    def after_pod_delete(self, pod: Pod, old: Pod | None, new: Pod | None) -> fwk.QueueingHint:
        """Return Skip: the plugins that rejected the pod know whether the deletion helps it."""
        return fwk.QueueingHint.SKIP


def _label(answer: fwk.GroupHelp | fwk.Status | None) -> str:
    """Return the label of the answer's status code."""
    return answer.code.label if isinstance(answer, fwk.Status) else fwk.Code.SUCCESS.label
