"""Member clusters whose objects are given in files: what a division over them is asked of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from msgspec.structs import replace

from podium.engine.files import LocatedManifest
from podium.estimator.cluster_objects import Cluster
from podium.estimator.division.assignment import Strategy, is_divided, strategy_of
from podium.estimator.division.attempts import Options, Question
from podium.estimator.division.availability import (
    GENERAL,
    SCHEDULER_ESTIMATOR,
    Estimator,
    EstimatorAnswers,
    GeneralEstimator,
    GivenAnswers,
)
from podium.estimator.division.bindings import BindingResource, BindingSpec
from podium.estimator.division.questions import bare_cluster, binding_in, bindings_in
from podium.estimator.errors import EstimateError
from podium.estimator.general import ModelsSemantics
from podium.estimator.manifests import admit_manifests, karmada_clusters_in, member_of, nodes_and_pods
from podium.estimator.member import Gates, MemberCluster
from podium.estimator.merge import NO_ANSWER
from podium.estimator.summaries import MemberSummary, summarise
from podium.objects.errors import FieldError

_NO_OPTIONS: Final = Options()


@dataclass(frozen=True, slots=True)
class _Member:
    """A member whose nodes and pods are given."""

    estimates: MemberCluster
    summary: MemberSummary


@dataclass(frozen=True, slots=True)
class _MemberEstimator:
    """Answers from the nodes and pods of members, and from given numbers where there are any."""

    members: Mapping[str, _Member]
    numbers: Mapping[str, int]
    keeps_partial: bool

    def estimate(self, clusters: Sequence[Cluster], spec: BindingSpec, *, in_sets: bool) -> EstimatorAnswers:
        """Return the answers for these clusters.

        Raises:
            EstimateError: an amount cannot be read.
        """
        answers: dict[str, int | str] = dict(self.numbers)
        for cluster in clusters:
            member = self.members.get(cluster.key)
            if member is not None and cluster.key not in answers:
                answers[cluster.key] = _answer(member.estimates, spec, in_sets)
            elif self.keeps_partial:
                answers.setdefault(cluster.key, NO_ANSWER)
        return GivenAnswers(answers).estimate(clusters, spec, in_sets=in_sets)


def _answer(member: MemberCluster, spec: BindingSpec, in_sets: bool) -> int:
    if in_sets:
        return member.max_available_component_sets(spec.components, spec.resource.namespace)
    return member.max_available_replicas(spec.replica_requirements)


class Fleet:
    """Member clusters.

    Args:
        clusters: files with Karmada's Cluster objects.
        members: by cluster, files with its nodes and pods. A cluster without a Cluster object has only its name.
        numbers: by cluster, the answer of its estimator server.
        semantics: of resource models.
        keeps_partial: leave a cluster without an answer to the other estimators, instead of dropping all answers.

    Raises:
        EstimateError, ManifestError: an object cannot be read, a cluster is given twice, or a number is for none.
    """

    def __init__(
        self,
        clusters: Iterable[LocatedManifest],
        members: Mapping[str, Sequence[LocatedManifest]],
        numbers: Mapping[str, int] | None = None,
        semantics: ModelsSemantics = ModelsSemantics.CURRENT,
        *,
        keeps_partial: bool = False,
    ) -> None:
        self._semantics = semantics
        self._numbers = dict(numbers or {})
        objects = {cluster.key: cluster for cluster in karmada_clusters_in(clusters)}
        if not objects and not members:
            raise EstimateError("there is no Cluster object of Karmada, and no member")
        self._members = {name: _member(name, sources, objects.get(name)) for name, sources in members.items()}
        self._objects = objects
        self._keeps_partial = keeps_partial
        if unknown := sorted(self._numbers.keys() - objects.keys() - members.keys()):
            raise EstimateError(f"available replicas for {unknown[0]}: there is no such cluster")

    def clusters(self, resource: BindingResource) -> list[Cluster]:
        """Return the Cluster objects. One that is only known by its nodes and pods serves the workload's kind."""
        names = dict.fromkeys([*self._objects, *self._members])
        clusters = []
        for name in names:
            cluster, member = self._objects.get(name) or bare_cluster(name, resource), self._members.get(name)
            if member is not None and cluster.status.resource_summary is None:
                status = replace(cluster.status, resource_summary=member.summary.resources)
                cluster = replace(cluster, status=status)
            clusters.append(cluster)
        return clusters

    def question(
        self,
        binding: Sequence[LocatedManifest],
        name: str,
        other_bindings: Iterable[LocatedManifest] = (),
        options: Options = _NO_OPTIONS,
        random: Random | None = None,
    ) -> Question:
        """Return the question of how a workload is divided over the clusters.

        Args:
            binding: holds a binding, or a workload with its policy.
            name: what to call the files of the binding.
            other_bindings: hold the other ResourceBindings.
            random: draws what upstream leaves to chance.

        Raises:
            EstimateError, ManifestError: the binding cannot be read or divided.
        """
        spec, status = binding_in(binding, name)
        clusters = self.clusters(spec.resource)
        estimators: dict[str, Estimator] = {}
        # Upstream counts a cluster without a summary as full. Where none has one, nobody collects them.
        if any(cluster.status.resource_summary is not None for cluster in clusters):
            estimators[GENERAL] = GeneralEstimator(self._semantics)
        if self._members or self._numbers:
            estimators[SCHEDULER_ESTIMATOR] = _MemberEstimator(self._members, self._numbers, self._keeps_partial)
        if not estimators and is_divided(spec) and strategy_of(spec) in (Strategy.AGGREGATED, Strategy.DYNAMIC_WEIGHT):
            raise EstimateError("no cluster has a status.resourceSummary: available replicas or members are needed")
        return Question(clusters, spec, status, estimators, bindings_in(other_bindings), options, random)


def _member(name: str, sources: Sequence[LocatedManifest], cluster: Cluster | None) -> _Member:
    manifests = admit_manifests(sources)
    nodes, pods = nodes_and_pods(manifests)
    # No node and no room look alike in a number.
    if not nodes:
        raise EstimateError(f"member {name}: no nodes: nothing can be estimated")
    models = cluster.spec.resource_models if cluster is not None else ()
    try:
        return _Member(member_of(manifests, Gates(), name), summarise(nodes, pods, models))
    except FieldError as error:
        raise EstimateError(f"member {name}: {error}") from error
