"""Pod groups: attempts, placements, and preemption as it is measured where pods are scheduled in groups.

Source: pkg/scheduler/metrics/metrics.go (kube-scheduler 1.37.2)
"""

from __future__ import annotations

from typing import Final, Literal

from podium.telemetry.families import ATTEMPT_S, counter, exponential, histogram

GroupResult = Literal["scheduled", "unschedulable", "waiting_on_preemption", "error"]
OF_POD_GROUPS: Final = frozenset(
    {
        "scheduler_podgroup_scheduling_algorithm_duration_seconds",
        "scheduler_preemption_evaluation_duration_seconds",
        "scheduler_preemption_execution_duration_seconds",
        "scheduler_preemption_pdb_violations_total",
        "scheduler_preemption_workload_disruptions",
        "scheduler_workload_preemption_victims",
    }
)
"""The metrics that are shown only if pods are scheduled in groups, though they would count without groups as well."""
_SEARCH_S: Final = exponential(0.001, 2, 16)
_GROUP_VICTIMS: Final = exponential(1, 2, 11)


class PodGroupMetrics:
    """Attempts at pod groups, their placements, and preemptions for them and beside them."""

    def __init__(self) -> None:
        self._group_attempts = counter(
            "scheduler_podgroup_schedule_attempts_total", "Attempts to schedule pod groups.", "result", "profile"
        )
        self._group_attempt_s = histogram(
            "scheduler_podgroup_scheduling_attempt_duration_seconds",
            "Time of an attempt at a pod group, until its decision was carried out.",
            ATTEMPT_S,
            "result",
            "profile",
        )
        self._group_algorithm_s = histogram(
            "scheduler_podgroup_scheduling_algorithm_duration_seconds",
            "Time to choose the nodes of a pod group.",
            ATTEMPT_S,
        )
        self._placements = counter(
            "scheduler_generated_placements_total", "Placements in which pod groups may be tried.", "profile"
        )
        self._placements_tried = counter(
            "scheduler_placement_evaluations_total",
            "Placements in which pod groups were tried, feasible or infeasible.",
            "result",
            "profile",
        )
        self._placement_s = histogram(
            "scheduler_placement_evaluation_duration_seconds",
            "Time to try a pod group in one placement.",
            ATTEMPT_S,
            "result",
            "profile",
        )
        self._make_preemption_families()
        super().__init__()

    def _make_preemption_families(self) -> None:
        self._workload_attempts = counter(
            "scheduler_workload_preemption_attempts_total", "Attempts to preempt for pod groups.", "result"
        )
        # Those for single pods stay in `scheduler_preemption_victims`, whose buckets end at 64.
        self._group_victims = histogram(
            "scheduler_workload_preemption_victims", "Victims per preemption for a pod group.", _GROUP_VICTIMS
        )
        self._disruptions = histogram(
            "scheduler_preemption_workload_disruptions",
            "Pod groups, and pods of groups that are evicted one by one, per preemption that evicts any.",
            _GROUP_VICTIMS,
            "preemptor",
        )
        self._search_s = histogram(
            "scheduler_preemption_evaluation_duration_seconds",
            "Time to choose the victims, with the pauses for other tasks.",
            _SEARCH_S,
            "preemptor",
            "result",
        )
        self._execution_s = histogram(
            "scheduler_preemption_execution_duration_seconds",
            "Time of a preemption, until its last victim was deleted.",
            _SEARCH_S,
            "preemptor",
            "result",
        )
        self._violations = counter(
            "scheduler_preemption_pdb_violations_total",
            "Victims whose eviction violates a PodDisruptionBudget.",
            "preemptor",
        )

    def count_group_attempt(self, result: GroupResult, profile: str, seconds: float) -> None:
        """Count an attempt at a pod group that has ended."""
        self._group_attempts[result, profile].add()
        self._group_attempt_s[result, profile].observe(seconds)

    def observe_group_algorithm(self, seconds: float) -> None:
        """Record the time of choosing a pod group's nodes, whether or not there are any."""
        self._group_algorithm_s[()].observe(seconds)

    def count_placements(self, profile: str, count: int) -> None:
        """Count the placements that were generated for a pod group."""
        self._placements[(profile,)].add(count)

    def observe_placement(self, profile: str, seconds: float, *, is_feasible: bool) -> None:
        """Record that a pod group was tried in a placement."""
        result = "feasible" if is_feasible else "infeasible"
        self._placements_tried[result, profile].add()
        self._placement_s[result, profile].observe(seconds)

    def count_group_preemption_attempt(self, result: str) -> None:
        """Count a pod group for which victims were looked for; `result` is the label of the status code."""
        self._workload_attempts[(result,)].add()

    def observe_group_victims(self, victims: int) -> None:
        """Record the number of victims that a preemption for a group chose."""
        self._group_victims[()].observe(victims)

    def observe_disruptions(self, preemptor: str, disruptions: int, violations: int) -> None:
        """Record what a preemption for a `pod` or a `podgroup` disrupts.

        Args:
            disruptions: the number of pod groups, or pods of groups, that are evicted as one.
            violations: the number of victims that violate a disruption budget.
        """
        # Upstream has no observation of 0.
        if disruptions:
            self._disruptions[(preemptor,)].observe(disruptions)
        if violations:
            self._violations[(preemptor,)].add(violations)

    def observe_victim_search(self, preemptor: str, result: str, seconds: float) -> None:
        """Record a search for victims; `result` is the label of the status code."""
        self._search_s[preemptor, result].observe(seconds)

    def observe_execution(self, preemptor: str, result: Literal["success", "error"], seconds: float) -> None:
        """Record a preemption that was carried out, or has failed."""
        self._execution_s[preemptor, result].observe(seconds)
