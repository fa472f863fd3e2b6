"""The answers of `podium estimate` about one cluster, as documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from podium.engine.cluster_objects import read_object
from podium.engine.derivation.admission import Admission
from podium.engine.files import LocatedManifest
from podium.engine.manifests import Manifest
from podium.engine.store import ObjectStore
from podium.estimator.accurate import Rules, accurate_replicas
from podium.estimator.cluster_objects import Cluster
from podium.estimator.errors import EstimateError
from podium.estimator.general import ModelsSemantics, general_replicas
from podium.estimator.manifests import cluster_for, member_of, nodes_and_pods
from podium.estimator.member import Gates
from podium.estimator.merge import merge_answers
from podium.estimator.quota import RESOURCE_QUOTAS
from podium.estimator.requirements import MAX_INT32, ReplicaRequirements
from podium.estimator.resource_models import default_models, fault_of
from podium.estimator.summaries import summarise
from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.objects import resource_types
from podium.objects.core import Pod
from podium.objects.errors import FieldError
from podium.objects.resource_types import PODS, ResourceType

Answer: TypeAlias = dict[str, Any]


def kinds_read(gates: Gates, *, is_accurate: bool) -> Sequence[ResourceType[Any]]:
    """Return the kinds of objects that an estimate depends on."""
    if is_accurate:
        return resource_types.WITHOUT_GATES
    quotas = (RESOURCE_QUOTAS,) if gates.resource_quota_estimate else ()
    return resource_types.NODES, resource_types.PODS, *quotas


def missing_quotas(manifests: Sequence[Manifest], gates: Gates) -> Sequence[str]:
    """Return the plural of ResourceQuota if the estimate depends on quotas and there are none."""
    has_quotas = any(manifest.get("kind") == RESOURCE_QUOTAS.kind for manifest in manifests)
    return [RESOURCE_QUOTAS.plural] if gates.resource_quota_estimate and not has_quotas else []


def parity_answer(
    manifests: Sequence[Manifest], requirements: ReplicaRequirements | None, gates: Gates, *, explain: bool
) -> Answer:
    """Return Karmada's own number; with `explain`, also how many replicas fit on each node and what limits them."""
    member = member_of(manifests, gates)
    answer: Answer = {"replicas": member.max_available_replicas(requirements)}
    if explain:
        answer["nodes"] = [
            {"node": estimate.node, "replicas": estimate.replicas, "limit": estimate.limit}
            for estimate in member.explain_replicas(requirements)
        ]
    return answer


def accurate_answer(
    manifests: Sequence[Manifest],
    replica: Pod | LocatedManifest,
    resources_in_full: Sequence[ResourceType[Any]],
    limit: TimeLimit = UNLIMITED,
    rules: Rules | None = None,
) -> tuple[Answer, Sequence[str]]:
    """Return the number that podium would bind, and the plurals of the kinds that it depends on and that are missing.

    Args:
        replica: a manifest is admitted as by the API server of that cluster.
        resources_in_full: the kinds of which `manifests` holds all objects that exist.
        limit: when to end with the replicas placed by then; the answer is partial then.
        rules: by default podium's default configuration.

    Raises:
        ManifestError: an object cannot be read, or the API server would refuse the replica.
    """
    store, admission = ObjectStore.of(manifests, resources_in_full), Admission(manifests)
    missing: list[str] = []
    if isinstance(replica, LocatedManifest):
        admission.demand_admission(replica.manifest)
        missing = admission.missing_kinds(replica.manifest)
        pod: Pod = read_object(replica, PODS, admission)
    else:
        pod = replica
    rules = rules or Rules()
    cluster, waiting = cluster_for(store, admission, pod, rules)

    def is_over() -> bool:
        limit.is_noticed |= limit.is_over()
        return limit.is_noticed

    limit.note(lambda: f"{len(waiting):,} pods wait and are placed before the replicas")
    replicas = accurate_replicas(
        cluster.engine, cluster.framework_for(pod), pod, waiting, cluster.create_claims, is_over=is_over
    )
    answer: Answer = {"replicas": replicas, "decidesAs": rules.config.release.minor} | (
        {"partial": True} if limit.is_noticed else {}
    )
    return answer, sorted({*missing, *(resource.plural for resource in store.missing_kinds())})


def general_answer(
    cluster: Cluster,
    manifests: Sequence[Manifest],
    requirements: ReplicaRequirements | None,
    semantics: ModelsSemantics,
    replicas: int,
    *,
    skips_after_full_node: bool = False,
) -> Answer:
    """Return the general estimate, Karmada's combination of it with `replicas`, and the present grades of the nodes.

    Args:
        skips_after_full_node: reproduce a fault of Karmada's grades, see `summarise`.

    Raises:
        EstimateError: the cluster's resource models are invalid.
        FieldError: a field of the cluster cannot be read.
    """
    general = _general_replicas(cluster, requirements, semantics)
    estimates = merge_answers([cluster.key], [{cluster.key: replicas}, {cluster.key: general}], MAX_INT32)
    nodes, pods = nodes_and_pods(manifests)
    models = cluster.spec.resource_models or default_models()
    graded = summarise(nodes, pods, models, skips_after_full_node=skips_after_full_node)
    return {
        "general_replicas": general,
        "merged_replicas": estimates[cluster.key],
        "allocatable_modelings": [
            {"grade": model.grade, "count": model.count} for model in graded.resources.allocatable_modelings
        ],
    }


def general_answers(
    clusters: Sequence[Cluster], requirements: ReplicaRequirements | None, semantics: ModelsSemantics
) -> Answer:
    """Return the general estimate of each cluster.

    Raises:
        EstimateError: a cluster's resource models are invalid, or another field cannot be read.
    """
    answers = []
    for cluster in clusters:
        try:
            replicas = _general_replicas(cluster, requirements, semantics)
        except (EstimateError, FieldError) as error:
            raise EstimateError(f"cluster {cluster.key}: {error}") from error
        answers.append({"cluster": cluster.key, "general_replicas": replicas})
    return {"clusters": answers}


def _general_replicas(cluster: Cluster, requirements: ReplicaRequirements | None, semantics: ModelsSemantics) -> int:
    if (fault := fault_of(cluster.spec.resource_models)) is not None:
        raise EstimateError(f"spec.resourceModels: {fault}")
    return general_replicas(cluster, requirements, semantics=semantics)
