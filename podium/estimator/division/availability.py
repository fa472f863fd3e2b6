"""The available replicas of the clusters: the minimum over the estimators.

Source: karmada pkg/scheduler/core/util.go and estimation.go, v1.18.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from podium.estimator.cluster_objects import Cluster
from podium.estimator.division.bindings import BindingSpec
from podium.estimator.general import ModelsSemantics, general_replicas, general_sets
from podium.estimator.merge import merge_answers
from podium.estimator.requirements import MAX_INT32, AssumedWorkload

GENERAL: Final = "general-estimator"
SCHEDULER_ESTIMATOR: Final = "scheduler-estimator"


@dataclass(frozen=True, slots=True)
class EstimatorAnswers:
    """The answers of one estimator: replicas by cluster, or errors, after which no answer of it counts."""

    replicas: Mapping[str, int]
    errors: Sequence[str] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the answers as a JSON value."""
        return {"errors": sorted(set(self.errors))} if self.errors else dict(self.replicas)


class Estimator(Protocol):
    """Answers how many replicas, or sets of components, fit into clusters."""

    def estimate(self, clusters: Sequence[Cluster], spec: BindingSpec, *, in_sets: bool) -> EstimatorAnswers:
        """Return the answers for these clusters."""
        ...


@dataclass(frozen=True, slots=True)
class GeneralEstimator:
    """The estimator that reads the resource summaries and models of the Cluster objects.

    Attributes:
        assumed_workloads: by cluster, the workloads assigned to it whose pods do not exist there yet.
    """

    semantics: ModelsSemantics = ModelsSemantics.CURRENT
    assumed_workloads: Mapping[str, Sequence[AssumedWorkload]] = field(default_factory=dict)

    def estimate(self, clusters: Sequence[Cluster], spec: BindingSpec, *, in_sets: bool) -> EstimatorAnswers:
        """Return the answers for these clusters.

        Raises:
            FieldError: an amount cannot be read.
        """
        return EstimatorAnswers({cluster.key: self._answer(cluster, spec, in_sets) for cluster in clusters})

    def _answer(self, cluster: Cluster, spec: BindingSpec, in_sets: bool) -> int:
        workloads = self.assumed_workloads.get(cluster.key, ())
        if in_sets:
            return general_sets(cluster, spec.components, workloads)
        return general_replicas(cluster, spec.replica_requirements, workloads, self.semantics)


@dataclass(frozen=True, slots=True)
class GivenAnswers:
    """Stands for the estimator servers of the members: their answers are given.

    Attributes:
        answers: by cluster a number, or the text of the error of its server. A cluster that is missing has no
            connection.
    """

    answers: Mapping[str, int | str]

    def estimate(self, clusters: Sequence[Cluster], spec: BindingSpec, *, in_sets: bool) -> EstimatorAnswers:
        """Return the answers for these clusters."""
        del spec
        call = "MaxAvailableComponentSets" if in_sets else "MaxAvailableReplicas"
        errors, replicas = [], {}
        for cluster in clusters:
            answer = self.answers.get(cluster.key)
            if answer is None:
                errors.append(f"cluster {cluster.key} does not exist in estimator cache")
            elif isinstance(answer, str):
                error = f"rpc error: code = Unknown desc = {answer}"
                errors.append(f"gRPC request cluster({cluster.key}) estimator error when calling {call}: {error}")
            else:
                replicas[cluster.key] = answer
        return EstimatorAnswers(replicas, errors)


@dataclass(frozen=True, slots=True)
class Availability:
    """What the estimators answered, and the replicas that each cluster can take beside those it has."""

    estimated: Mapping[str, EstimatorAnswers]
    replicas: Mapping[str, int]


def available_replicas(
    clusters: Sequence[Cluster], spec: BindingSpec, estimators: Mapping[str, Estimator], *, in_sets: bool
) -> Availability:
    """Ask the estimators, and return the minimum for each cluster.

    Args:
        in_sets: count sets of the workload's components instead of replicas.

    Raises:
        FieldError: an amount cannot be read.
    """
    names = [cluster.key for cluster in clusters]
    # Nothing limits what runs no pods, and it stays so: not even the number of its replicas.
    if spec.replicas == 0 and not spec.components:
        return Availability({}, dict.fromkeys(names, MAX_INT32))
    estimated = {name: estimator.estimate(clusters, spec, in_sets=in_sets) for name, estimator in estimators.items()}
    answers = (None if answer.errors else answer.replicas for answer in estimated.values())
    return Availability(estimated, merge_answers(names, answers, spec.replicas))
