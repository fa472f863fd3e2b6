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
from podium.estimator.manifests import cluster_for, member_of
from podium.estimator.member import Gates
from podium.estimator.merge import merge_answers
from podium.estimator.quota import RESOURCE_QUOTAS
from podium.estimator.requirements import MAX_INT32, ReplicaRequirements
from podium.estimator.resource_models import default_models, fault_of, grade_nodes
from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.objects import resource_types
from podium.objects.core import Pod
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
    cluster, waiting = cluster_for(store, admission, pod, rules or Rules())

    def is_over() -> bool:
        limit.is_noticed |= limit.is_over()
        return limit.is_noticed

    limit.note(lambda: f"{len(waiting):,} pods wait and are placed before the replicas")
    replicas = accurate_replicas(
        cluster.engine, cluster.framework_for(pod), pod, waiting, cluster.create_claims, is_over=is_over
    )
    answer: Answer = {"replicas": replicas} | ({"partial": True} if limit.is_noticed else {})
    return answer, sorted({*missing, *(resource.plural for resource in store.missing_kinds())})


def general_answer(
    cluster: Cluster,
    manifests: Sequence[Manifest],
    requirements: ReplicaRequirements | None,
    semantics: ModelsSemantics,
    replicas: int,
) -> Answer:
    """Return the general estimate, Karmada's combination of it with `replicas`, and the present grades of the nodes.

    Raises:
        EstimateError: the cluster's resource models are invalid.
        FieldError: a field of the cluster cannot be read.
    """
    models = cluster.spec.resource_models
    if (fault := fault_of(models)) is not None:
        raise EstimateError(f"spec.resourceModels: {fault}")
    general = general_replicas(cluster, requirements, semantics=semantics)
    estimates = merge_answers([cluster.key], [{cluster.key: replicas}, {cluster.key: general}], MAX_INT32)
    graded = grade_nodes(member_of(manifests, Gates()).snapshot(), models or default_models())
    return {
        "general_replicas": general,
        "merged_replicas": estimates[cluster.key],
        "allocatable_modelings": [{"grade": model.grade, "count": model.count} for model in graded],
    }
