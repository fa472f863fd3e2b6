"""`podium.Clusters`: the members of a fleet: which takes a whole workload, and how replicas divide over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, Self, TypeAlias

from podium.engine.configurations import Config, read_config
from podium.engine.files import LocatedManifest
from podium.engine.object_files import Objects, objects_given
from podium.estimator.division.answers import division_answer
from podium.estimator.division.attempts import Options
from podium.estimator.division.explanation import ClusterShare
from podium.estimator.division.fleet import Fleet
from podium.estimator.general import ModelsSemantics
from podium.fleets.answers import FleetFit
from podium.fleets.loading import LoadedFleet, load_fleet
from podium.fleets.ordering import Order, Prices
from podium.fleets.search import FleetQuestion, ask_all
from podium.fleets.workload import read_workload
from podium.lib.system_clock import SystemClock
from podium.plugins import IN_TREE
from podium.plugins.contrib import CONTRIB

Semantics: TypeAlias = Literal["current", "v1.17", "v1.11"]
OrderName: TypeAlias = Literal["emptiest", "cheapest"]


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
        shares: for each cluster the reason for its number of replicas, and which changes would give it more.
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
    """Member clusters: which of them takes a whole workload, and how Karmada's scheduler divides replicas over them."""

    def __init__(
        self, fleet: Fleet, members: Mapping[str, Sequence[LocatedManifest]], config: Config | None = None
    ) -> None:
        self._fleet = fleet
        self._members = members
        self._config = config
        self._loaded_fleet: LoadedFleet | None = None

    @classmethod
    def load(
        cls,
        clusters: Objects = (),
        *,
        members: Mapping[str, Objects] | None = None,
        available: Mapping[str, int] | None = None,
        models_semantics: Semantics = "current",
        config: Config | None = None,
    ) -> Self:
        """Load the clusters.

        Args:
            clusters: Karmada's Cluster objects: files, or manifests.
            members: by cluster, its nodes and pods, from which its available replicas are estimated.
            available: by cluster, the available replicas that its estimator server answers.
            models_semantics: interpret resource models as Karmada did up to that release.
            config: decides in each member for `fit`; kube-scheduler's defaults unless given.

        Raises:
            EstimateError, ManifestError: an object cannot be read, or a cluster is given twice.
        """
        objects_by_member = {name: objects_given(objects) for name, objects in (members or {}).items()}
        fleet = Fleet(objects_given(clusters), objects_by_member, available, ModelsSemantics(models_semantics))
        return cls(fleet, objects_by_member, config)

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

    def fit(
        self,
        workload: Objects,
        *,
        order: OrderName = "emptiest",
        prices: Mapping[str, float] | None = None,
        clusters_max: int | None = None,
    ) -> FleetFit:
        """Find the members whose scheduler would bind the whole workload. Nothing changes.

        Args:
            workload: what would be submitted, such as a Deployment, a Job, or a PodGroup and its pods.
            order: which of them come first.
            prices: hourly, of nodes by instance type, or by `CLUSTER/TYPE`; `*` stands for any other type.
            clusters_max: how many members are enough; all unless given.

        Raises:
            ClusterError: the workload cannot be read, has no pods, or a price is not a number.
            ConfigError, PluginError: the configuration cannot be read, or a profile cannot be built.
        """
        if self._loaded_fleet is None:
            classes = {**IN_TREE, **CONTRIB}
            self._loaded_fleet = load_fleet(
                self._members, read_config(self._config, classes), classes, SystemClock().now()
            )
        fleet = self._loaded_fleet
        question = FleetQuestion(read_workload(objects_given(workload)), Order(order), Prices(prices), clusters_max)
        return ask_all(question, fleet.members, fleet.without)


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
