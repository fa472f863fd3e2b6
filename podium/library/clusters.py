"""`podium.Clusters`: the member clusters of a fleet, over which a workload is divided as Karmada's scheduler does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, Self, TypeAlias

from podium.engine.object_files import Objects, objects_given
from podium.estimator.division.answers import division_answer
from podium.estimator.division.attempts import Options
from podium.estimator.division.explanation import ClusterShare
from podium.estimator.division.fleet import Fleet
from podium.estimator.general import ModelsSemantics

Semantics: TypeAlias = Literal["current", "v1.17", "v1.11"]


@dataclass(frozen=True, slots=True)
class Division:
    """How a workload is divided over the clusters.

    Attributes:
        reason: of the condition Scheduled: Success, NoClusterFit, Unschedulable or SchedulerError.
        message: of that condition.
        replicas: by cluster. If the workload cannot be divided, the previous result where it is kept.
        available: the replicas that each feasible cluster takes beside those it has.
        unfit: why each other cluster is not feasible.
        affinity: the name of the affinity group that counts, or "".
        shares: for each cluster why it gets so many, and what would bring more in.
    """

    reason: str
    message: str
    replicas: Mapping[str, int]
    available: Mapping[str, int]
    unfit: Mapping[str, str]
    affinity: str = ""
    shares: Sequence[ClusterShare] = field(default=(), repr=False)

    def __bool__(self) -> bool:
        """Return True if the workload is divided."""
        return self.reason == "Success"


class Clusters:
    """Member clusters, over which workloads are divided as Karmada's scheduler divides them."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    @classmethod
    def load(
        cls,
        clusters: Objects = (),
        *,
        members: Mapping[str, Objects] | None = None,
        available: Mapping[str, int] | None = None,
        models_semantics: Semantics = "current",
    ) -> Self:
        """Load the clusters.

        Args:
            clusters: Karmada's Cluster objects: files, or manifests.
            members: by cluster, its nodes and pods, from which its available replicas are estimated.
            available: by cluster, the available replicas that its estimator server answers.
            models_semantics: interpret resource models as Karmada did up to that release.

        Raises:
            EstimateError, ManifestError: an object cannot be read, or a cluster is given twice.
        """
        objects_by_member = {name: objects_given(objects) for name, objects in (members or {}).items()}
        return cls(Fleet(objects_given(clusters), objects_by_member, available, ModelsSemantics(models_semantics)))

    def divide(
        self,
        binding: Objects,
        *,
        other_bindings: Objects = (),
        propagate_empty: bool = False,
        workload_affinity: bool = False,
        multiple_pod_templates: bool = False,
        seed: int | None = None,
    ) -> Division:
        """Divide a workload's replicas.

        Args:
            binding: a ResourceBinding, or a workload and its PropagationPolicy.
            other_bindings: the ResourceBindings of other workloads, for `workload_affinity`.
            propagate_empty: show selected clusters without replicas in the result, too.
            workload_affinity: as the feature gate WorkloadAffinity.
            multiple_pod_templates: as the feature gate MultiplePodTemplatesScheduling.
            seed: draws what Karmada leaves to chance.

        Raises:
            EstimateError, ManifestError: an object cannot be read, or the placement is not valid.
        """
        # The shares are explained always: in Python the answer is looked at, not printed for thousands of clusters.
        question = self._fleet.question(
            objects_given(binding),
            "binding",
            objects_given(other_bindings),
            Options(propagate_empty, workload_affinity, multiple_pod_templates),
            Random(seed) if seed is not None else None,
        )
        return _division(division_answer(question, explain=True))


def _division(answer: Mapping[str, Any]) -> Division:
    return Division(
        answer["reason"],
        answer["message"],
        answer["clusters"],
        answer.get("available", {}),
        answer.get("unfit", {}),
        answer.get("affinity", ""),
        [ClusterShare(**share) for share in answer["explanation"]],
    )
