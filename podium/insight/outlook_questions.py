"""Answers when the pods of a question get a node: pods of the cluster, or pods and workloads that come to it."""

from __future__ import annotations

from collections.abc import Sequence

from podium.engine.asked_pods import PodLike, pod_named
from podium.engine.derivation.admission import with_node_lost_tolerations
from podium.engine.derivation.claims import may_have_claims
from podium.engine.derivation.control_objects import mapping_at, namespace_of
from podium.engine.derivation.pods import named_pod
from podium.engine.derivation.workload_kinds import templates_in
from podium.engine.errors import ManifestError
from podium.engine.files import LocatedManifest
from podium.engine.gangs import enforced_gang_of
from podium.engine.manifests import as_manifest, resource_of
from podium.insight.cluster import Cluster
from podium.insight.forecast import Forecast
from podium.insight.outlook import Outlook
from podium.insight.steps import Apply
from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.objects.core import Pod
from podium.objects.resource_types import PODS


def outlook_of(
    cluster: Cluster,
    target: str | Sequence[LocatedManifest],
    at_s: float,
    *,
    fix: bool = True,
    limit: TimeLimit = UNLIMITED,
    forecast: Forecast | None = None,
    has_one_queue: bool = True,
) -> Outlook:
    """Return when the pods in question get a node. The cluster is not changed.

    Args:
        target: the key of a pod of the cluster; or pods, workloads and what else goes with them, which are applied.
        at_s: the time at which the question is asked, in seconds since the epoch.
        fix: look for edits after which a pod fits that otherwise never does.
        forecast: one of the cluster as it is, from the same time on.
        has_one_queue: as for `Forecast`.

    Raises:
        ClusterError: no profile serves a pod, an object cannot be read, or there is no such pod.
        ScheduleError: an attempt failed.
        TimeIsUpError: the time was over before each pod was tried once.
    """
    if isinstance(target, str):
        pod = pod_named(target, cluster.store.objects(PODS))
        if not pod.node_name:
            cluster.framework_for(pod)
        forecast = forecast or Forecast(cluster, at_s, limit, has_one_queue=has_one_queue)
        return forecast.of_pods([pod.key], fix=fix, limit=limit)
    if forecast is not None and (pod_alone := _pod_alone(cluster, target)) is not None:
        answer = forecast.of_new_pod(pod_alone, fix=fix, limit=limit)
        if answer is not None:
            return answer
    step = Apply(", ".join(dict.fromkeys(item.location for item in target)), target)
    played = Forecast(cluster, at_s, limit, step, has_one_queue=has_one_queue)
    if not played.asked and not played.refusals:
        workload = next((item.manifest for item in target if templates_in(item.manifest)), None)
        if workload is not None:
            name = f"{workload['kind']} {namespace_of(workload)}/{mapping_at(workload, 'metadata').get('name') or ''}"
            raise ManifestError(f"{step.name}: {name}: spec: it asks for no pods (replicas, parallelism, suspend)")
        raise ManifestError(f"{step.name}: there is neither a pod nor a workload with pods")
    for key in played.asked:
        if (asked_pod := played.pod(key)) is not None:
            cluster.framework_for(asked_pod)
    return played.of_pods(played.asked, fix=fix, limit=limit)


def locate(cluster: Cluster, pod: PodLike) -> str | Sequence[LocatedManifest]:
    """Return a pod of a question of the library as `outlook_of` takes it.

    Raises:
        ManifestError: it is no manifest.
    """
    if isinstance(pod, str):
        return pod
    if isinstance(pod, Pod):
        current = cluster.store.get(PODS, pod.key)
        return (
            pod.key
            if current is not None and current.uid == pod.uid
            else [LocatedManifest(as_manifest(PODS, pod), "pod")]
        )
    for name, default in (("apiVersion", ""), ("kind", None)):
        if not isinstance(pod.get(name, default), str):
            raise ManifestError(f"{name}: {'required' if pod.get(name) is None else 'expected a string'}")
    return [LocatedManifest(pod, pod["kind"])]


def _pod_alone(cluster: Cluster, objects: Sequence[LocatedManifest]) -> Pod | None:
    """Return the pod, if the objects are one that the cluster does not have, and that nothing else comes with."""
    manifest = named_pod(objects[0].manifest) if len(objects) == 1 else {}
    if resource_of(manifest) is not PODS or mapping_at(manifest, "spec").get("nodeName"):
        return None
    admission = cluster.admission
    admission.demand_admission(manifest)
    pod = cluster.read_pod(with_node_lost_tolerations(manifest))
    is_simple = (
        cluster.store.get(PODS, pod.key) is None and not may_have_claims(pod) and enforced_gang_of(cluster, pod) is None
    )
    return pod if is_simple and not admission.objects.in_namespace("ResourceQuota", namespace_of(manifest)) else None
