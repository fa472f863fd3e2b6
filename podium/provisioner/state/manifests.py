"""A cluster from files or an API server, completed so that it can be planned.

Owns what is filled in: the metadata and defaults that an API server would add, the state of NodePools that no Karpenter
has looked at, and the pods of workloads that are only planned. Never reads a file: it takes what `engine.files` found.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from podium.engine.derivation.admission import Admission
from podium.engine.derivation.claims import with_claims
from podium.engine.derivation.control_objects import ControlObjects, count_at, group_of, key_of, mapping_at
from podium.engine.derivation.controllers import SyncContext, sync_job
from podium.engine.derivation.pods import named_pod, sample_pod, stateful_set_pod
from podium.engine.derivation.workload_kinds import PodTemplate, replicas_of, templates_in
from podium.engine.errors import ManifestError
from podium.engine.files import LocatedManifest
from podium.engine.gangs import GROUPS
from podium.engine.manifests import DEFAULT_NAMESPACE, Manifest, is_namespaced, read_manifest, resource_of
from podium.engine.misspelt_fields import misspelt_fields
from podium.objects.core import Taint
from podium.objects.errors import FieldError
from podium.objects.meta import NamespacedObject, ObjectMeta
from podium.objects.resource_types import ALL, PODS, KubeObject, ResourceType
from podium.objects.unreadable import unread_field
from podium.objects.wire import without_nulls
from podium.provisioner.apis.labels import NODE_CLASS
from podium.provisioner.apis.node_pool_rules import check_node_pool
from podium.provisioner.apis.objects import (
    ClusterObjects,
    Condition,
    DaemonSet,
    LabelRequirement,
    NodeClaim,
    NodeClaimSpec,
    NodeClaimTemplate,
    NodeClassReference,
    NodeOverlay,
    NodePool,
    NodePoolSpec,
    NodePoolStatus,
)
from podium.provisioner.state.reading import KINDS, check_object, read_named_objects
from podium.provisioner.state.usable import UnusableNode, usable_form

NODE_POOLS: Final = ResourceType("NodePool", "/apis/karpenter.sh/v1/nodepools", NodePool)
NODE_CLAIMS: Final = ResourceType("NodeClaim", "/apis/karpenter.sh/v1/nodeclaims", NodeClaim)
DAEMON_SETS: Final = ResourceType("DaemonSet", "/apis/apps/v1/daemonsets", DaemonSet)

RESOURCES: Final[tuple[ResourceType[Any], ...]] = (
    *(resource for resource in ALL if resource.kind in KINDS),
    NODE_POOLS,
    NODE_CLAIMS,
    DAEMON_SETS,
)
"""Every kind that a plan depends on."""

NODE_OVERLAYS: Final = ResourceType("NodeOverlay", "/apis/karpenter.sh/v1alpha1/nodeoverlays", NodeOverlay)
CAPACITY_BUFFERS: Final = ResourceType(
    "CapacityBuffer", "/apis/autoscaling.x-k8s.io/v1beta1/capacitybuffers", NamespacedObject
)

OPTIONAL_RESOURCES: Final[tuple[ResourceType[Any], ...]] = (NODE_OVERLAYS, CAPACITY_BUFFERS)
"""Kinds that few clusters have, and whose absence leaves a plan whole."""

_READ: Final[Mapping[str, ResourceType[Any]]] = {resource.kind: resource for resource in (*RESOURCES, NODE_OVERLAYS)}
_NOT_COUNTED: Final = {
    ("autoscaling.x-k8s.io", "CapacityBuffer"): "the headroom that it asks for",
    ("karpenter.sh", "Provisioner"): "a NodePool of Karpenter before 0.32",
}
"""By group and kind: what of a plan is missing without it."""
_NAMESPACED: Final = frozenset(resource.kind for resource in RESOURCES if is_namespaced(resource))
ANY_NODE_CLASS: Final = NodeClassReference(group=NODE_CLASS[0], kind=NODE_CLASS[1], name="default")
"""The node class of a NodePool or a NodeClaim that names none."""
_READY: Final = ("ValidationSucceeded", "NodeClassReady", "Ready")
_replace = msgspec.structs.replace
_UNSCHEDULABLE: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
_PLANNED: Final = {"phase": "Pending", "conditions": [_UNSCHEDULABLE]}


def read_cluster(
    objects_found: Sequence[LocatedManifest],
    *,
    assume_unschedulable: bool = False,
    on_fault: Callable[[str], None] | None = None,
) -> ClusterObjects:
    """Return the objects of a cluster that planning reads.

    Args:
        assume_unschedulable: whether pods that kube-scheduler has not tried yet count as fitting nowhere.
        on_fault: receives a sentence about each object that planning cannot use in full, and what follows from that.
            Without it such an object is an error.

    Raises:
        FieldError: an object cannot be read, or is there twice with different contents.
    """
    admission = Admission(item.manifest for item in objects_found)
    first_seen: dict[tuple[str, str, str], tuple[Manifest, str]] = {}
    groups: list[tuple[ResourceType[Any], KubeObject]] = []
    warnings: dict[str, None] = {}
    for item in objects_found:
        manifest = item.manifest
        kind = str(manifest["kind"])
        if not _is_read(manifest):
            warnings.update(_not_counted(manifest))
            groups += _pod_group(manifest)
            continue
        metadata = _metadata(item, kind)
        identity = (kind, str(metadata["namespace"]), str(metadata["name"]))
        for error in misspelt_fields(manifest, _READ[kind].type):
            raise FieldError(f"{item.location}: {_key(identity)}", error)
        manifest_read = without_nulls(dict(manifest))
        if (resource := resource_of(manifest)) is not None:
            # Before it has a uid, by which an object is known to be admitted already.
            manifest_read = dict(admission.admit(manifest_read, resource))
        document = {**manifest_read, "metadata": _metadata(LocatedManifest(manifest_read, item.location), kind)}
        if kind == PODS.kind and assume_unschedulable:
            document = _unschedulable(document)
        first, source = first_seen.setdefault(identity, (document, item.location))
        # Two files may hold the same object; two different ones of a name would make the plan depend on the order of
        # files.
        if first != document:
            raise FieldError(f"{item.location}: {_key(identity)}", f"is there with other contents in {source}")
    objects = read_named_objects(
        ((manifest, f"{where}: {_key(identity)}", ": ") for identity, (manifest, where) in first_seen.items()),
        take=_usable_form if on_fault is not None else _checked_form,
        on_fault=None if on_fault is None else lambda fault, kind, part: on_fault(_consequence(fault, kind, part)),
    )
    pools = tuple(map(completed_pool, objects.node_pools))
    return dataclasses.replace(objects, node_pools=pools, others=tuple(groups), warnings=tuple(warnings))


def _pod_group(manifest: Manifest) -> Iterator[tuple[ResourceType[Any], KubeObject]]:
    """Yield the PodGroup; one that cannot be read is as if it were not there, and other objects are left out."""
    if (resource := resource_of(manifest)) in GROUPS:
        # One broken object must not keep all others from being planned.
        with contextlib.suppress(ManifestError):
            yield resource, read_manifest(manifest, resource)


def _not_counted(manifest: Manifest) -> dict[str, None]:
    """Return a sentence about an object of a kind that a plan would depend on, if planning read it."""
    version, kind = str(manifest.get("apiVersion", "")), str(manifest["kind"])
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else ""
    effect = _NOT_COUNTED.get((version.rpartition("/")[0], kind))
    return {} if effect is None else {f"{kind} {name} ({version}) is not counted: {effect}": None}


def _usable_form(item: Any) -> tuple[Any | None, FieldError | None]:
    fault = _pool_fault(item)
    return (None, fault) if fault is not None else usable_form(item)


def _checked_form(item: Any) -> tuple[Any | None, FieldError | None]:
    fault = _pool_fault(item)
    if fault is None:
        try:
            check_object(item)
        except FieldError as error:
            fault = error
    return item, fault


def _pool_fault(item: Any) -> FieldError | None:
    if isinstance(item, NodePool):
        try:
            check_node_pool(item)
        except FieldError as error:
            return error
    return None


def _consequence(fault: FieldError, kind: str, part: Any | None) -> str:
    """Return the sentence about an object that cannot be used in full."""
    if kind == NODE_POOLS.kind:
        stays = "so its nodes stay" if part is not None else "so nothing is bought from it, and its nodes stay"
    elif part is None:
        stays = "so it is left out"
    else:
        is_judged = unread_field(part) is None and not isinstance(part, UnusableNode)
        stays = "which does not count" if is_judged else "so its node stays as it is"
    return f"{fault}, {stays}"


def pods_of_workloads(
    objects_found: Sequence[LocatedManifest], name: str, cluster: Iterable[LocatedManifest] = ()
) -> Iterator[LocatedManifest]:
    """Yield a workload file's objects, and as many unscheduled pods as each workload asks for, with claims.

    DaemonSets stay without pods, since their pods come with each node.

    Args:
        name: what to call the file.
        cluster: the objects of the cluster, which may have the claims and the templates for them.

    Raises:
        FieldError: there is nothing to plan, or a workload asks for a number of pods that is not usable.
    """
    # An empty plan would look as if nothing were needed.
    if not any(templates_in(item.manifest) or _is_read(item.manifest) for item in objects_found):
        kinds = ", ".join(dict.fromkeys(str(item.manifest["kind"]) for item in objects_found)) or "nothing"
        raise FieldError(name, f"expected pods or workloads, found {kinds}")
    manifests = [*(item.manifest for item in cluster), *(item.manifest for item in objects_found)]
    objects = ControlObjects(manifests)
    claims = {(str(manifest.get("kind")), key_of(manifest)) for manifest in manifests}
    for item in objects_found:
        templates = templates_in(item.manifest)
        if not templates or item.manifest.get("kind") != PODS.kind:
            yield item
        # Its pods come with each node, as `Daemons` plans them.
        if item.manifest.get("kind") == DAEMON_SETS.kind:
            continue
        for template in templates:
            for pod in _workload_pods(item, template, is_only=len(templates) == 1):
                pod_with_claims, own_claims = with_claims(pod, objects, lambda kind, key: (kind, key) in claims)
                yield LocatedManifest(
                    {**pod_with_claims, "status": {**mapping_at(pod_with_claims, "status"), **_PLANNED}}, item.location
                )
                for claim in own_claims:
                    claims.add((str(claim["kind"]), key_of(claim)))
                    yield LocatedManifest(claim, item.location)


def _workload_pods(workload: LocatedManifest, template: PodTemplate, *, is_only: bool) -> Iterator[Manifest]:
    """Yield the unbound pods that a workload asks for with a template."""
    if template.content is workload.manifest:
        yield _unbound(named_pod(workload.manifest))
        return
    kind = workload.manifest.get("kind")
    sample = sample_pod(workload.manifest, template.content)
    name = str(mapping_at(workload.manifest, "metadata").get("name") or "")
    prefix = name if is_only or not template.name else f"{name}-{template.name}"
    first = count_at(workload.manifest, "spec", "ordinals", "start", default=0) if kind == "StatefulSet" else 0
    count = replicas_of(workload, template, default=1)
    if kind == "Job" and group_of(workload.manifest) == "batch":
        # A Job creates as many pods as its parallelism and completions say, and gives them indexes.
        context = SyncContext(now_s=0.0, restarts=ControlObjects().restarts_of, serial=0)
        for ordinal, pod in enumerate(sync_job(workload.manifest, (), context).create):
            yield _unbound({**pod, "metadata": {**mapping_at(pod, "metadata"), "name": f"{prefix}-{ordinal}"}})
        return
    for ordinal in range(first, first + count):
        if kind == "StatefulSet":
            yield _unbound(stateful_set_pod(workload.manifest, ordinal))
        else:
            yield _unbound({**sample, "metadata": {**sample["metadata"], "name": f"{prefix}-{ordinal}"}})


def ready_pool(
    name: str, labels: Mapping[str, str], taints: Iterable[Taint], label_values: Mapping[str, Sequence[str]]
) -> NodePool:
    """Return a ready NodePool whose nodes have these labels and taints, and an allowed value of other labels."""
    requirements = tuple(
        LabelRequirement(key=key, operator="In", values=tuple(values)) for key, values in label_values.items()
    )
    spec = NodeClaimSpec(requirements=requirements, taints=tuple(taints), node_class_ref=ANY_NODE_CLASS)
    template = NodeClaimTemplate(metadata=ObjectMeta(labels=dict(labels)), spec=spec)
    conditions = tuple(Condition(type=condition, status="True") for condition in _READY)
    return NodePool(
        metadata=ObjectMeta(name=name),
        spec=NodePoolSpec(template=template),
        status=NodePoolStatus(conditions=conditions),
    )


def completed_pool(pool: NodePool) -> NodePool:
    """Return the NodePool with a node class; one that no Karpenter has looked at counts as ready."""
    # A file that a person wrote has no status, and is meant to be bought from.
    if not pool.status.conditions:
        conditions = tuple(Condition(type=condition, status="True") for condition in _READY)
        pool = _replace(pool, status=NodePoolStatus(conditions=conditions))
    template = pool.spec.template
    if template.spec.node_class_ref != NodeClassReference():
        return pool
    template = _replace(template, spec=_replace(template.spec, node_class_ref=ANY_NODE_CLASS))
    return _replace(pool, spec=_replace(pool.spec, template=template))


# ---------------------------------------------------------------- one object


def _is_read(manifest: Manifest) -> bool:
    resource = _READ.get(str(manifest["kind"]))
    return resource is not None and resource.group == str(manifest.get("apiVersion", "")).rpartition("/")[0]


def _metadata(item: LocatedManifest, kind: str) -> dict[str, Any]:
    """Return the metadata with a namespace and a uid."""
    metadata = item.manifest.get("metadata")
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        raise FieldError(f"{item.location}: {kind}: metadata.name", "is missing")
    namespace = (metadata.get("namespace") or DEFAULT_NAMESPACE) if kind in _NAMESPACED else ""
    # Files mostly have no uid; a made-up one must be the same each time the plan is made.
    uid = metadata.get("uid") or f"{kind}/{namespace}/{metadata['name']}"
    return {**metadata, "namespace": namespace, "uid": uid}


def _key(identity: tuple[str, str, str]) -> str:
    kind, namespace, name = identity
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _unschedulable(pod: dict[str, Any]) -> dict[str, Any]:
    """Mark a waiting pod as one for which kube-scheduler found no node; return other pods as they are."""
    spec, status = pod.get("spec"), pod.get("status") or {}
    if not isinstance(spec, dict) or not isinstance(status, dict):
        return pod
    # A gated pod is not tried by any scheduler, so a node would not help it.
    if spec.get("nodeName") or spec.get("schedulingGates") or status.get("phase") in ("Succeeded", "Failed"):
        return pod
    conditions = [
        condition for condition in status.get("conditions") or () if condition.get("type") != _UNSCHEDULABLE["type"]
    ]
    return {**pod, "status": {**status, "conditions": [*conditions, _UNSCHEDULABLE]}}


def _unbound(pod: Manifest) -> dict[str, Any]:
    """Return the pod of a workload that is only planned."""
    spec = pod.get("spec")
    pending_spec = (
        {name: value for name, value in spec.items() if name != "nodeName"} if isinstance(spec, dict) else spec
    )
    return {**pod, "spec": pending_spec, "status": {}}
