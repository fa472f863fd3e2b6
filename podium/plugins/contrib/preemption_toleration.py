"""PreemptionToleration: preemption that spares pods whose PriorityClass tolerates it, for some time or against some.

Runs at: PostFilter, in the place of DefaultPreemption.
Verdict: Success with the node and the victims; Unschedulable if preemption does not help or the pod must not preempt;
Error if no candidate was found and a dry run failed, as for a pod whose PriorityClass is gone.
Requeue: as by the plugins that rejected the pod. Nothing wakes it when a toleration ends.
Cost: as DefaultPreemption, and two look-ups for each pod of lower priority; no dry run is reused by the next attempt,
since tolerations end.
Source: sigs.k8s.io/scheduler-plugins pkg/preemptiontoleration (for Kubernetes 1.35).
Differs: as DefaultPreemption does from upstream's. Evictions are requested after the attempt, not within it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from podium.cluster import Snapshot
from podium.config import Extender
from podium.framework import contract as fwk
from podium.framework.preemption.candidates import Budgets, Importance, errors_of
from podium.framework.preemption.dry_run import dry_run_preemption
from podium.framework.preemption.lowest_priorities import LowestPriorities
from podium.framework.preemption.victim_cache import VictimCache
from podium.framework.preemption.victims import NO_VICTIMS
from podium.lib.error_text import cut
from podium.objects.core import Pod
from podium.objects.resource_types import POD_DISRUPTION_BUDGETS, PRIORITY_CLASSES
from podium.objects.selectors import parse_int64
from podium.objects.times import time_or_none
from podium.objects.workloads import PriorityClass
from podium.plugins.contrib.plugin_args import PluginArgs, invalid
from podium.plugins.shared.preemption_outcomes import best_of, no_help
from podium.plugins.shared.preemption_rows import rows_to_try

_PREFIX: Final = "preemption-toleration.scheduling.x-k8s.io/"
MINIMUM_PRIORITY: Final = f"{_PREFIX}minimum-preemptable-priority"
TOLERATION_SECONDS: Final = f"{_PREFIX}toleration-seconds"

_NEVER: Final = fwk.unschedulable("not eligible due to preemptionPolicy=Never.")
_VICTIMS_LEAVING: Final = fwk.unschedulable("not eligible due to a terminating pod on the nominated node.")
_HELD_BACK: Final = fwk.unschedulable("not eligible: its victims keep coming back.")
_COME_BACK: Final = fwk.unschedulable("Preemption is held back: victims keep coming back")


class PreemptionTolerationArgs(PluginArgs, frozen=True, kw_only=True):
    """The plugin's args; names, defaults and limits are those of DefaultPreemption."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100

    def problems(self) -> Iterable[str]:
        """Return numbers out of range, and that both are 0."""
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        fields = ("minCandidateNodesPercentage", "minCandidateNodesAbsolute")
        if not 0 <= percentage <= 100:
            yield invalid(fields[0], percentage, "not in valid range [0, 100]")
        if absolute < 0:
            yield invalid(fields[1], absolute, "not in valid range [0, inf)")
        if percentage == 0 and absolute == 0:
            yield invalid(fields[0], 0, f"cannot be zero at the same time as {fields[1]}")
            yield invalid(fields[1], 0, f"cannot be zero at the same time as {fields[0]}")


class PreemptionToleration(fwk.AskingPostFilterPlugin):
    """Finds the node where preemption costs least, without pods that tolerate it."""

    Args = PreemptionTolerationArgs
    args: PreemptionTolerationArgs

    def __init__(self, args: PreemptionTolerationArgs, handle: fwk.Handle) -> None:
        super().__init__(args, handle)
        self._budgets = handle.lister(POD_DISRUPTION_BUDGETS)
        self._classes = handle.lister(PRIORITY_CLASSES)
        self._lowest = LowestPriorities()

    def post_filter_asking(
        self,
        state: fwk.CycleState,
        pod: Pod,
        snapshot: Snapshot,
        filtered_nodes: fwk.FilteredNodes,
        extenders: Sequence[Extender],
    ) -> fwk.Steps[tuple[fwk.PostFilterResult | None, fwk.Status | None]]:
        """Return success with a node and victims, Unschedulable, or Error."""
        preemptions = self.handle.preemptions
        preemptions.attempted()
        if pod.spec.preemption_policy == "Never":
            return None, _NEVER
        if _waits_for_victims(pod, snapshot, filtered_nodes):
            return None, _VICTIMS_LEAVING
        rows, held_back = rows_to_try(filtered_nodes, snapshot, preemptions.held_back_from(pod))
        if not len(rows):
            return (None, _HELD_BACK) if len(held_back) else no_help(snapshot, {})
        # Start at a random row, so that the same nodes are not always tried first.
        start = self.handle.random.randrange(len(rows))
        rotated_rows = np.concatenate((rows[start:], rows[:start]))
        have_lower = (self._lowest.of(snapshot) < pod.priority)[rotated_rows]
        budgets = Budgets(self._budgets.list(), self.handle.release.preemption)
        importance = self._importance(pod, budgets)
        outcome = yield from dry_run_preemption(
            filtered_nodes,
            rotated_rows[have_lower],
            self._candidates_max(len(rows)),
            pod,
            budgets,
            importance,
            VictimCache(),
        )
        if outcome.candidates:
            return (yield from best_of(outcome.candidates, pod, snapshot, extenders, importance))
        if errors := errors_of(outcome.rejections.values()):
            return None, fwk.error_status(errors)
        rejections = outcome.rejections | dict.fromkeys(rotated_rows[~have_lower].tolist(), NO_VICTIMS)
        for row, status in rejections.items():
            if status is NO_VICTIMS:
                text = f"No victims found on node {snapshot.name(row)} for preemptor pod {pod.metadata.name}"
                rejections[row] = fwk.unresolvable(text)
        return no_help(snapshot, rejections | dict.fromkeys(held_back.tolist(), _COME_BACK))

    def notes(self) -> Sequence[str]:
        """Return which PriorityClasses spare their pods, and which have annotations that cannot be read."""
        notes = []
        for item in sorted(self._classes.list(), key=lambda item: item.key):
            annotations = item.metadata.annotations
            toleration = _parse(annotations.get(MINIMUM_PRIORITY), annotations.get(TOLERATION_SECONDS))
            if toleration is None:
                name, range_ = _unreadable_annotation(annotations)
                notes.append(
                    f"PriorityClass {item.key}: metadata.annotations[{name}]: {cut(annotations[name])} is not "
                    f"{range_}, so its pods are not spared"
                )
            elif (minimum := toleration[0]) is not None and minimum > item.value + 1 and toleration[1]:
                how_long = "" if toleration[1] < 0 else f" for {toleration[1]} s after they were scheduled"
                notes.append(f"pods of {item.key} are spared from priorities below {minimum}{how_long}")
        return notes

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register no event: the plugin rejects no node."""
        return ()

    def _candidates_max(self, node_count: int) -> int:
        percentage, absolute = self.args.min_candidate_nodes_percentage, self.args.min_candidate_nodes_absolute
        return min(max(node_count * percentage // 100, absolute), node_count)

    def _importance(self, pod: Pod, budgets: Budgets) -> Importance:
        now_s, is_protected = self.handle.clock.now(), self.handle.preemptions.is_protected

        def is_spared(victim: Pod) -> bool:
            if is_protected(victim) or budgets.forbid(victim):
                return True
            name = victim.spec.priority_class_name
            if not name:
                return False
            priority_class = self._classes.get(name)
            if priority_class is None:
                raise fwk.PluginError(f'priorityclass.scheduling.k8s.io "{name}" not found')
            return tolerates(victim, priority_class, pod.priority, now_s)

        return Importance(now_s, is_spared)


def _waits_for_victims(pod: Pod, snapshot: Snapshot, filtered_nodes: fwk.FilteredNodes) -> bool:
    """Return whether pods of lower priority leave the nominated node, whyever, and the pod may fit there then."""
    row = snapshot.row_of.get(pod.status.nominated_node_name)
    if row is None or filtered_nodes.status(row).code is fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return False
    return any(
        pod_on_node.is_terminating and pod_on_node.priority < pod.priority for pod_on_node in snapshot.node(row).pods
    )


def tolerates(victim: Pod, priority_class: PriorityClass, preemptor_priority: int, now_s: float) -> bool:
    """Return True if the pod must not be preempted now by a pod of that priority.

    Annotations that do not parse give no toleration. A pod that has no node yet tolerates, whatever its seconds are.
    """
    annotations = priority_class.metadata.annotations
    toleration = _parse(annotations.get(MINIMUM_PRIORITY), annotations.get(TOLERATION_SECONDS))
    if toleration is None:
        return False
    minimum, seconds = toleration
    if preemptor_priority >= (priority_class.value + 1 if minimum is None else minimum):
        return False
    if seconds < 0:
        return True
    condition = victim.status.condition("PodScheduled")
    if condition is None or condition.status != "True":
        return True
    return (time_or_none(condition.last_transition_time) or 0.0) + seconds > now_s


@lru_cache(maxsize=4096)
def _parse(minimum_text: str | None, seconds_text: str | None) -> tuple[int | None, int] | None:
    """Return the lowest priority that may preempt, if given, and the seconds; None if one of them is no number."""
    minimum = None if minimum_text is None else parse_int64(minimum_text)
    seconds = 0 if seconds_text is None else parse_int64(seconds_text)
    has_wrong_minimum = minimum_text is not None and (minimum is None or not -(2**31) <= minimum < 2**31)
    return None if has_wrong_minimum or seconds is None else (minimum, seconds)


def _unreadable_annotation(annotations: Mapping[str, str]) -> tuple[str, str]:
    """Return the name of the annotation that `_parse` refuses, the first of both, and what it should be."""
    if _parse(annotations.get(MINIMUM_PRIORITY), None) is None:
        return MINIMUM_PRIORITY, "an integer of 32 bits"
    return TOLERATION_SECONDS, "an integer of 64 bits"
