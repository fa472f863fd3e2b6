"""Makes the pods of workloads as controllers do: names, labels, owners, volumes and tolerations.

Source: kubernetes v1.36.2, pkg/controller: controller_utils.go, statefulset/stateful_set_utils.go, daemon/util,
job/indexed_job_utils.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from podium.engine.derivation.control_objects import count_at, group_of, items_at, key_of, mapping_at, namespace_of
from podium.engine.derivation.workload_kinds import demand_template
from podium.engine.files import LocatedManifest
from podium.engine.manifests import Manifest

TEMPLATE_HASH: Final = "pod-template-hash"
"""The label that tells a Deployment's ReplicaSets apart."""
POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
REVISION: Final = "controller-revision-hash"

# The API server's letters: no vowels, lest a name contain a word, and nothing that looks like another letter.
_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5
_NAME_LENGTH_MAX: Final = 63
_DAEMON_TOLERATIONS: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_HOST_NETWORK_TOLERATION: Final = ("node.kubernetes.io/network-unavailable", "NoSchedule")


def suffix_of(*parts: object) -> str:
    """Return five letters as an API server appends them to `generateName`, the same for equal parts."""
    # Not random: the same question must give the same names, and so the same answer.
    number = int.from_bytes(hashlib.sha256("\0".join(map(str, parts)).encode()).digest()[:8], "big")
    letters = []
    for _ in range(_SUFFIX_LENGTH):
        number, index = divmod(number, len(_SUFFIX_LETTERS))
        letters.append(_SUFFIX_LETTERS[index])
    return "".join(letters)


def generated_name(prefix: str, *parts: object) -> str:
    """Return a name as the API server makes it from `generateName`."""
    # The API server cuts the prefix, not the suffix, which alone makes the name unique.
    return f"{prefix[: _NAME_LENGTH_MAX - _SUFFIX_LENGTH]}{suffix_of(prefix, *parts)}"


def named_pod(pod: Manifest, number: int = 0) -> Manifest:
    """Return the pod with a name of its own if it has only `generateName`."""
    metadata = mapping_at(pod, "metadata")
    if metadata.get("name") or not isinstance(prefix := metadata.get("generateName"), str) or not prefix:
        return pod
    return {**pod, "metadata": {**metadata, "name": generated_name(prefix, namespace_of(pod), number)}}


def asked_pod(items: Sequence[LocatedManifest], name: str) -> tuple[LocatedManifest, list[LocatedManifest]]:
    """Return the pod in question of a file, unbound, and the other objects of the file, the workload included.

    Args:
        name: what to call the file.

    Raises:
        ManifestError: the file holds no pod and no workload, or more than one.
    """
    source, template = demand_template(items, name)
    if template.content is source.manifest:
        return LocatedManifest(named_pod(source.manifest), source.location), [
            item for item in items if item is not source
        ]
    dependencies = list(items)
    if source.manifest.get("kind") == "Deployment" and group_of(source.manifest) == "apps":
        dependencies.append(LocatedManifest(replica_set_of(source.manifest), source.location))
    return LocatedManifest(sample_pod(source.manifest, template.content), source.location), dependencies


def sample_pod(workload: Manifest, template: Mapping[str, Any]) -> Manifest:
    """Return the pod that stands for the workload in questions.

    It has the workload's name. For a StatefulSet it is the first pod. The pod of a DaemonSet may run on any node.
    """
    kind = workload.get("kind")
    if kind == "StatefulSet":
        return stateful_set_pod(workload, count_at(workload, "spec", "ordinals", "start", default=0))
    # A malformed name is kept, so that it is reported when the pod is read.
    name: Any = mapping_at(workload, "metadata").get("name") or ""
    if kind == "DaemonSet":
        return daemon_set_pod(workload, name)
    if kind == "Job" and group_of(workload) == "batch":
        return job_pod(workload, name)
    if kind == "Deployment" and group_of(workload) == "apps":
        replica_set = replica_set_of(workload)
        return pod_of(replica_set, mapping_at(replica_set, "spec", "template"), name)
    return pod_of(workload, template, name)


def replica_set_of(deployment: Manifest) -> dict[str, Any]:
    """Make the ReplicaSet of a Deployment's template, without replicas yet."""
    metadata, template = mapping_at(deployment, "metadata"), mapping_at(deployment, "spec", "template")
    # Not the hash that Kubernetes computes, which depends on how Go prints the template.
    letters = suffix_of(key_of(deployment), msgspec.json.encode(template))
    labels = {**mapping_at(template, "metadata", "labels"), TEMPLATE_HASH: letters}
    selector = mapping_at(deployment, "spec", "selector")
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata.get('name') or ''}-{letters}",
            "namespace": namespace_of(deployment),
            "labels": labels,
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {
            "replicas": 0,
            "selector": {**selector, "matchLabels": {**mapping_at(selector, "matchLabels"), TEMPLATE_HASH: letters}},
            "template": {**template, "metadata": {**mapping_at(template, "metadata"), "labels": labels}},
        },
    }


def pod_of(
    workload: Manifest, template: Mapping[str, Any], name: str, labels: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Make a pod with the labels, annotations and spec of the template, controlled by the workload."""
    of_template = mapping_at(template, "metadata")
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace_of(workload),
        "labels": {**mapping_at(of_template, "labels"), **(labels or {})},
        "ownerReferences": [owner_reference(workload)],
    }
    if annotations := mapping_at(of_template, "annotations"):
        metadata["annotations"] = annotations
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}


def owner_reference(owner: Manifest) -> dict[str, Any]:
    """Make the owner reference that names this object as the controller."""
    return {
        "apiVersion": owner.get("apiVersion") or "",
        "kind": owner.get("kind") or "",
        "name": mapping_at(owner, "metadata").get("name") or "",
        "uid": uid_of(owner),
        "controller": True,
    }


def uid_of(manifest: Manifest) -> str:
    """Return the uid of an object; without one, make it from its kind and key."""
    return str(mapping_at(manifest, "metadata").get("uid") or f"{manifest.get('kind')}/{key_of(manifest)}")


def stateful_set_pod(stateful_set: Manifest, ordinal: int) -> dict[str, Any]:
    """Make the pod of that ordinal. Its own claims replace the template's volumes of the same names."""
    template = mapping_at(stateful_set, "spec", "template")
    name = f"{mapping_at(stateful_set, 'metadata').get('name') or ''}-{ordinal}"
    pod = pod_of(stateful_set, template, name, {POD_NAME: name, "apps.kubernetes.io/pod-index": str(ordinal)})
    claims = {
        str(mapping_at(claim, "metadata").get("name") or ""): claim_name(claim, name)
        for claim in items_at(stateful_set, "spec", "volumeClaimTemplates")
    }
    volumes = [volume for volume in items_at(pod["spec"], "volumes") if volume.get("name") not in claims]
    claim_volumes = [
        {"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in claims.items()
    ]
    if claims:
        pod["spec"] = {**pod["spec"], "volumes": [*claim_volumes, *volumes]}
    return pod


def claim_name(template: Manifest, pod_name: str) -> str:
    """Return the name of a pod's claim from this template of its StatefulSet."""
    return f"{mapping_at(template, 'metadata').get('name') or ''}-{pod_name}"


def daemon_set_pod(daemon_set: Manifest, name: str, node: str = "") -> dict[str, Any]:
    """Make a pod with the tolerations of daemons, and for a given node, with affinity to just that node.

    The affinity replaces the template's required one, by which the controller has selected the node.
    """
    pod = pod_of(daemon_set, mapping_at(daemon_set, "spec", "template"), name)
    spec = dict(mapping_at(pod, "spec"))
    keys = [*_DAEMON_TOLERATIONS, *((_HOST_NETWORK_TOLERATION,) if spec.get("hostNetwork") is True else ())]
    tolerations = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in keys]
    template_tolerations = [toleration for toleration in items_at(spec, "tolerations") if toleration not in tolerations]
    spec["tolerations"] = [*template_tolerations, *tolerations]
    if node:
        # Since 1.12 the scheduler places daemons, which this affinity pins to their node.
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        affinity_rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        affinity = mapping_at(spec, "affinity")
        spec["affinity"] = {**affinity, "nodeAffinity": {**mapping_at(affinity, "nodeAffinity"), **affinity_rule}}
    return {**pod, "spec": spec}


def job_pod(job: Manifest, name: str, index: int | None = None) -> dict[str, Any]:
    """Make a pod of a Job; with an index, the pod of an indexed Job."""
    job_labels = {"job-name": str(mapping_at(job, "metadata").get("name") or ""), "controller-uid": uid_of(job)}
    labels = {**job_labels, **{f"batch.kubernetes.io/{key}": value for key, value in job_labels.items()}}
    template = mapping_at(job, "spec", "template")
    if index is None:
        return pod_of(job, template, name, labels)
    pod = pod_of(job, template, name, {**labels, COMPLETION_INDEX: str(index)})
    pod["metadata"]["annotations"] = {**mapping_at(pod, "metadata", "annotations"), COMPLETION_INDEX: str(index)}
    return pod
