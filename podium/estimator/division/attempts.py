"""One scheduling attempt at a binding, and the affinity groups that are tried one after the other.

Source: karmada pkg/scheduler/core/generic_scheduler.go, pkg/scheduler/scheduler.go and helper.go, v1.18.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from podium.estimator.cluster_objects import Cluster
from podium.estimator.division.assignment import Assignment, assign_replicas
from podium.estimator.division.availability import Availability, Estimator, available_replicas
from podium.estimator.division.bindings import BindingSpec, BindingStatus, ResourceBinding, TargetCluster
from podium.estimator.division.candidates import Candidate, rank_candidates
from podium.estimator.division.errors import DivisionError, NotEnoughReplicas
from podium.estimator.division.filters import FilteredClusters, filter_clusters
from podium.estimator.division.selection import select_clusters
from podium.objects.times import parse_time

SUCCESS: Final = "Success"
NO_CLUSTER_FIT: Final = "NoClusterFit"
UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"
_SUCCESS_MESSAGE: Final = "Binding has been scheduled successfully."


@dataclass(frozen=True, slots=True)
class Options:
    """The options of Karmada's scheduler that influence a result."""

    propagate_empty: bool = False
    workload_affinity: bool = False
    multiple_pod_templates: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """A binding to schedule once, and what the result depends on.

    Attributes:
        estimators: by name; the smallest answer counts.
        neighbours: the other bindings.
        random: draws what upstream leaves to the order of a map. None takes the order that is given.
    """

    clusters: Sequence[Cluster]
    spec: BindingSpec
    status: BindingStatus
    estimators: Mapping[str, Estimator]
    neighbours: Sequence[ResourceBinding] = ()
    options: Options = Options()
    random: Random | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt, as far as it came.

    Attributes:
        group: the name of the affinity group that was tried, or "".
        candidates: the feasible clusters, the best first.
        selection: in the order in which they were selection; None if the selection failed, or was not reached.
        assignment: None if the attempt failed.
        error: the reason of the failure with the step that failed, or None.
    """

    group: str
    filter_result: FilteredClusters
    availability: Availability | None = None
    candidates: Sequence[Candidate] = ()
    selection: Sequence[Candidate] | None = None
    assignment: Assignment | None = None
    error: DivisionError | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of scheduling a binding.

    Attributes:
        reason: of the condition Scheduled.
        is_message_random: True if upstream's message depends on the order of a map.
        clusters: the new result, or the previous one where it is kept.
        affinity: the name of the affinity group that the status observes afterwards, or "".
        attempts: one for each affinity group that was tried.
    """

    reason: str
    message: str
    is_message_random: bool
    clusters: tuple[TargetCluster, ...]
    is_order_random: bool
    affinity: str
    attempts: Sequence[Attempt] = field(default_factory=tuple)

    @property
    def is_retried(self) -> bool:
        """True if Karmada's queue tries the binding again by itself."""
        return self.reason not in (SUCCESS, NO_CLUSTER_FIT)


def divide(question: Question) -> Outcome:
    """Schedule a binding once.

    Raises:
        FieldError: an amount cannot be read.
    """
    terms = question.spec.rules.cluster_affinities
    observed_group = question.status.scheduler_observing_affinity_name
    if not terms:
        attempt = _attempt(question, observed_group)
        return _outcome(question, attempt, (attempt,), observed_group)
    # Groups before the observed_group one are not tried again. An unknown name starts anew.
    start = next((index for index, term in enumerate(terms) if term.affinity_name == observed_group), 0)
    attempts: list[Attempt] = []
    for term in terms[start:]:
        attempts.append(_attempt(question, term.affinity_name))
        if attempts[-1].assignment is not None:
            return _outcome(question, attempts[-1], attempts, term.affinity_name)
    # The first failure decides what happens to the binding.
    return _outcome(question, attempts[0], attempts, observed_group)


def _attempt(question: Question, group: str) -> Attempt:
    spec, options = question.spec, question.options
    neighbours = question.neighbours if options.workload_affinity else None
    filter_result = filter_clusters(question.clusters, spec, group, neighbours)
    if not filter_result.feasible:
        return Attempt(group, filter_result)
    in_sets = options.multiple_pod_templates and is_one_cluster_of_components(spec)
    availability = available_replicas(filter_result.feasible, spec, question.estimators, in_sets=in_sets)
    candidates = rank_candidates(filter_result.feasible, spec, group, availability.replicas)
    selection: Sequence[Candidate] | None = None
    try:
        selection = select_clusters(candidates, spec, 1 if in_sets else spec.replicas)
    except DivisionError as error:
        failure = type(error)(f"failed to select clusters: {error}")
        return Attempt(group, filter_result, availability, candidates, error=failure)
    try:
        assignment = assign_replicas(selection, spec, group, is_fresh=_is_fresh(question), random=question.random)
    except DivisionError as error:
        failure = type(error)(f"failed to assign replicas: {error}")
        return Attempt(group, filter_result, availability, candidates, selection, error=failure)
    if options.propagate_empty:
        assignment = _with_empty(assignment, selection)
    return Attempt(group, filter_result, availability, candidates, selection, assignment)


def is_one_cluster_of_components(spec: BindingSpec) -> bool:
    """Return True if all components go to one cluster, so that whole sets of them are counted."""
    return bool(spec.components) and any(
        (constraint.spread_by_field, constraint.min_groups, constraint.max_groups) == ("cluster", 1, 1)
        for constraint in spec.rules.spread_constraints
    )


def _is_fresh(question: Question) -> bool:
    """Return True if rescheduling was asked for since the last result."""
    trigger_time, last_time = question.spec.reschedule_triggered_at, question.status.last_scheduled_time
    return trigger_time is not None and last_time is not None and parse_time(trigger_time) > parse_time(last_time)


def _with_empty(assignment: Assignment, selection: Sequence[Candidate]) -> Assignment:
    names = {target.name for target in assignment.clusters}
    empty = tuple(TargetCluster(name=candidate.name) for candidate in selection if candidate.name not in names)
    return Assignment(assignment.clusters + empty, assignment.is_order_random)


def _outcome(question: Question, decisive: Attempt, attempts: Sequence[Attempt], affinity: str) -> Outcome:
    previous = question.spec.clusters
    if decisive.assignment is not None:
        targets, is_order_random = decisive.assignment.clusters, decisive.assignment.is_order_random
        return Outcome(SUCCESS, _SUCCESS_MESSAGE, False, targets, is_order_random, affinity, attempts)
    if decisive.error is None:
        message = decisive.filter_result.text(question.random)
        # Only this failure empties the result.
        return Outcome(NO_CLUSTER_FIT, message, decisive.filter_result.is_reason_random, (), False, affinity, attempts)
    reason = UNSCHEDULABLE if isinstance(decisive.error, NotEnoughReplicas) else SCHEDULER_ERROR
    return Outcome(reason, str(decisive.error), False, previous, False, affinity, attempts)
