"""The pods of the workload in question, as the API server of a member cluster would admit them.

Owns what admission costs: pods of one template with equal labels are admitted once, and members whose admission is the
same share the typed pods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from podium.engine.cluster import Cluster
from podium.engine.derivation.admission import demand_allowed, with_node_lost_tolerations
from podium.engine.derivation.control_objects import mapping_at, namespace_of
from podium.engine.derivation.quotas import Quotas
from podium.engine.manifests import Manifest
from podium.fleets.workload import Workload
from podium.objects.core import Pod
from podium.objects.resource_types import PERSISTENT_VOLUME_CLAIMS, PODS


def admitted_pods(cluster: Cluster, workload: Workload, key: object = None) -> Sequence[Pod]:
    """Return the typed pods.

    Args:
        key: equal for clusters whose objects of admission are equal; None if that is not known.

    Raises:
        RefusedError: the API server would refuse one. The message is its own.
        ManifestError: a pod cannot be read.
    """
    pods: Sequence[Pod] | None = workload.typed_pods.get(key) if key is not None else None
    if pods is None:
        pods = _read_all(cluster, workload.pods)
        if key is not None:
            workload.typed_pods[key] = pods
    _demand_quotas(cluster, workload.pods, pods)
    return pods


def _read_all(cluster: Cluster, manifests: Sequence[Manifest]) -> Sequence[Pod]:
    samples: dict[tuple[int, bytes], Pod] = {}
    pods = []
    for manifest in manifests:
        metadata = mapping_at(manifest, "metadata")
        # Labels count, too: affinity and spreading may match the values that a pod itself has.
        template = id(manifest["spec"]), msgspec.msgpack.encode(metadata.get("labels"))
        sample = samples.get(template)
        if sample is None:
            cluster.admission.demand_admission(manifest)
            sample = samples[template] = cluster.read_pod(with_node_lost_tolerations(manifest))
        pods.append(_rename(sample, metadata.get("name")))
    return pods


def _rename(pod: Pod, name: Any) -> Pod:
    metadata = pod.metadata
    # No pod of a dump has such a uid, even if a workload of that name runs there already.
    metadata = msgspec.structs.replace(metadata, name=name, uid=f"workload/{metadata.namespace}/{name}")
    return Pod(metadata=metadata, spec=pod.spec, status=pod.status)


def _demand_quotas(cluster: Cluster, manifests: Sequence[Manifest], pods: Sequence[Pod]) -> None:
    """Refuse the pods if a quota of their namespace does not suffice. Raises: RefusedError."""
    objects, store = cluster.admission.objects, cluster.store
    if not any(objects.in_namespace("ResourceQuota", name) for name in {namespace_of(item) for item in manifests}):
        return
    quotas = Quotas(
        objects,
        lambda namespace: [pod for pod in store.objects(PODS).values() if pod.metadata.namespace == namespace],
        lambda namespace: [
            claim for claim in store.objects(PERSISTENT_VOLUME_CLAIMS).values() if claim.metadata.namespace == namespace
        ],
    )
    for manifest, pod in zip(manifests, pods, strict=True):
        demand_allowed(manifest, quotas.refusal(pod, cluster.admission.admit(manifest, PODS)))
