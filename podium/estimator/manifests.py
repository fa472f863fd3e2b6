"""Member clusters, replicas and Karmada's Cluster objects, from the objects in files and recorded cases.

Never reads a file: it takes what `engine.files` has found in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import msgspec

from podium.cluster import CacheError
from podium.engine.cluster import Cluster
from podium.engine.cluster_objects import read_object
from podium.engine.derivation.admission import Admission
from podium.engine.derivation.pods import asked_pod
from podium.engine.errors import ManifestError
from podium.engine.files import LocatedManifest
from podium.engine.manifests import Manifest, read_manifest, resource_of
from podium.engine.misspelt_fields import misspelt_fields
from podium.engine.store import ObjectStore
from podium.estimator.accurate import Rules
from podium.estimator.cluster_objects import Cluster as KarmadaCluster
from podium.estimator.division.estimator_service import EstimatorService
from podium.estimator.errors import EstimateError
from podium.estimator.member import READ, READ_TO_TRY, Gates, MemberCluster
from podium.estimator.resource_models import standardise
from podium.estimator.scheduler_view import SchedulerView
from podium.lib.system_clock import SystemClock
from podium.objects.core import Node, Pod
from podium.objects.errors import FieldError
from podium.objects.resource_types import PODS, ResourceType
from podium.objects.unreadable import kind_of

_KINDS: Mapping[tuple[str, str], ResourceType[Any]] = {
    (resource.group, resource.kind): resource for resource in (*READ, *READ_TO_TRY)
}


@dataclass(frozen=True, slots=True)
class Workload:
    """A replica of the workload.

    Attributes:
        pod: made from the template, with the defaults that do not depend on the cluster.
        manifest: the same as a manifest that no API server has admitted yet.
        others: the other objects of the file.
    """

    pod: Pod
    manifest: LocatedManifest
    priority_class_name: str
    others: tuple[Manifest, ...] = ()


def member_of(manifests: Sequence[Any], gates: Gates, name: str = "", rules: Rules | None = None) -> MemberCluster:
    """Build a member cluster from these objects.

    Args:
        rules: for accurate estimates; without them the cluster has none.

    Raises:
        ManifestError: an object cannot be read.
    """
    sources = []
    for manifest in manifests:
        resource = _kind_of(manifest)
        if resource is not None:
            sources.append(read_manifest(manifest, resource))
    view = None
    if rules is not None:
        view = SchedulerView(rules, ObjectStore.of(manifests).lister, _refuse_broken, SystemClock(), Random())
    member = MemberCluster(name, _refuse_broken, gates, view)
    for item in sorted(sources, key=lambda item: (item.metadata.namespace, item.metadata.name)):
        member.put(item)
    return member


def nodes_and_pods(manifests: Sequence[Any]) -> tuple[list[Node], list[Pod]]:
    """Return the nodes and pods among these objects, in order of namespace and name.

    Raises:
        ManifestError: one cannot be read.
    """
    objects = [read_manifest(manifest, resource) for manifest in manifests if (resource := _kind_of(manifest))]
    objects.sort(key=lambda item: (item.metadata.namespace, item.metadata.name))
    return [item for item in objects if isinstance(item, Node)], [item for item in objects if isinstance(item, Pod)]


def admit_manifests(sources: Iterable[LocatedManifest]) -> list[Manifest]:
    """Return the objects with the defaults that an API server fills in."""
    manifests = [source.manifest for source in sources]
    admission = Admission(manifests)
    return [
        admission.admit(manifest, resource) if (resource := resource_of(manifest)) else manifest
        for manifest in manifests
    ]


def cluster_for(store: ObjectStore, admission: Admission, replica: Pod, rules: Rules) -> tuple[Cluster, list[Pod]]:
    """Return the cluster as the scheduler sees it, and its pending pods.

    Raises:
        ClusterError: an object cannot be read.
    """
    profile = replace(rules.profile, scheduler_name=replica.spec.scheduler_name)
    try:
        cluster = Cluster(replace(rules.config, profiles=(profile,)), store, rules.classes, admission=admission)
    except CacheError as error:
        raise ManifestError(str(error)) from error
    return cluster, [pod for pod in store.objects(PODS).values() if not pod.node_name and not pod.is_terminating]


def workload_in(sources: Iterable[LocatedManifest], name: str) -> Workload:
    """Return the workload among the objects of a file: a pod, or an object with a pod template.

    Args:
        name: what to call the file.

    Raises:
        ManifestError: there is no workload, or more than one.
    """
    pod_source, other_sources = asked_pod(list(sources), name)
    metadata, spec = pod_source.manifest.get("metadata") or {}, pod_source.manifest.get("spec") or {}
    if isinstance(metadata, dict) and isinstance(spec, dict):
        spec = {**spec, "nodeName": None}
    manifest = LocatedManifest(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, pod_source.location
    )
    pod = read_object(manifest, PODS, Admission(source.manifest for source in other_sources))
    name = str(spec.get("priorityClassName") or "")
    return Workload(pod, manifest, name, tuple(item.manifest for item in other_sources))


def karmada_clusters_in(sources: Iterable[LocatedManifest]) -> list[KarmadaCluster]:
    """Return Karmada's Cluster objects among a file's objects, with their models as Karmada's webhook leaves them.

    Raises:
        EstimateError: one cannot be read, or has no name or that of another.
    """
    clusters: dict[str, KarmadaCluster] = {}
    for source in sources:
        if source.manifest["kind"] != "Cluster" or "karmada.io/" not in str(source.manifest.get("apiVersion")):
            continue
        for misspelling in misspelt_fields(source.manifest, KarmadaCluster):
            raise EstimateError(f"{source.location}: {misspelling}")
        try:
            cluster = msgspec.convert(source.manifest, KarmadaCluster)
        except msgspec.ValidationError as error:
            raise EstimateError(f"{source.location}: {error}") from error
        if not cluster.key:
            raise EstimateError(f"{source.location}: metadata.name: Required value")
        # Answers go by name, so a second cluster of that name would be lost.
        if cluster.key in clusters:
            raise EstimateError(f"{source.location}: cluster {cluster.key} is given twice")
        # The webhook standardises the models before it validates them.
        models = standardise(cluster.spec.resource_models)
        spec = msgspec.structs.replace(cluster.spec, resource_models=models)
        clusters[cluster.key] = msgspec.structs.replace(cluster, spec=spec)
    return list(clusters.values())


def karmada_cluster_in(sources: Iterable[LocatedManifest], name: str) -> KarmadaCluster:
    """Return the only Cluster object among a file's objects.

    Args:
        name: what to call the file.

    Raises:
        EstimateError: there is not exactly one, or it cannot be read.
    """
    clusters = karmada_clusters_in(sources)
    if len(clusters) != 1:
        raise EstimateError(f"{name}: expected one Cluster object of Karmada, found {len(clusters)}")
    return clusters[0]


def estimator_services_in(sources: Iterable[LocatedManifest]) -> dict[str, EstimatorService]:
    """Return the Services among a file's objects, by `namespace/name`.

    Raises:
        EstimateError: one cannot be read.
    """
    services: dict[str, EstimatorService] = {}
    for source in sources:
        if (source.manifest["kind"], source.manifest.get("apiVersion")) == ("Service", "v1"):
            try:
                service = msgspec.convert(source.manifest, EstimatorService)
            except msgspec.ValidationError as error:
                raise EstimateError(f"{source.location}: {error}") from error
            services[service.key] = service
    return services


def _kind_of(manifest: Any) -> ResourceType[Any] | None:
    if not isinstance(manifest, dict):
        return None
    return _KINDS.get((str(manifest.get("apiVersion", "")).rpartition("/")[0], str(manifest.get("kind", ""))))


def _refuse_broken(item: Node | Pod, error: FieldError) -> None:
    raise EstimateError(f"{kind_of(item)} {item.key}: {error}") from error
