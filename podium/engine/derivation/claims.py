"""Derives the claims that a pod brings with it: from its StatefulSet's templates, ephemeral volumes and devices.

Source: kubernetes pkg/controller/{statefulset/stateful_pod_control.go,volume/ephemeral,resourceclaim}, v1.36.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from podium.engine.derivation.control_objects import ControlObjects, items_at, mapping_at, namespace_of
from podium.engine.derivation.pods import claim_name, generated_name, owner_reference
from podium.engine.manifests import Manifest, as_manifest
from podium.objects.core import Pod
from podium.objects.resource_types import PERSISTENT_VOLUME_CLAIMS
from podium.objects.storage import PersistentVolumeClaim

ClaimExists = Callable[[str, str], bool]
"""Tells whether a claim of that kind with that key exists."""


def may_have_claims(pod: Pod) -> bool:
    """Return whether claims may exist because the pod does."""
    spec = pod.spec
    return any(
        volume.persistent_volume_claim is not None or volume.ephemeral is not None for volume in spec.volumes
    ) or any(use.resource_claim_template_name for use in spec.resource_claims)


def with_claims(pod: Manifest, objects: ControlObjects, exists: ClaimExists) -> tuple[Manifest, list[Manifest]]:
    """Return the pod with the names of its claims, and the claims that do not exist yet."""
    claims: list[Manifest] = [claim for claim in _volume_claims(pod, objects) if not exists(_kind(claim), _key(claim))]
    statuses = {str(status.get("name")): status for status in items_at(pod, "status", "resourceClaimStatuses")}
    for name, claim in _device_claims(pod, objects):
        status = statuses.get(name)
        if status is not None and exists("ResourceClaim", f"{namespace_of(pod)}/{status.get('resourceClaimName')}"):
            continue
        statuses[name] = {"name": name, "resourceClaimName": claim["metadata"]["name"]}
        claims.append(claim)
    if statuses:
        pod = {**pod, "status": {**mapping_at(pod, "status"), "resourceClaimStatuses": list(statuses.values())}}
    return pod, claims


def _volume_claims(pod: Manifest, objects: ControlObjects) -> Iterator[dict[str, Any]]:
    metadata = mapping_at(pod, "metadata")
    pod_name, namespace = str(metadata.get("name") or ""), namespace_of(pod)
    for volume in items_at(pod, "spec", "volumes"):
        template = mapping_at(volume, "ephemeral", "volumeClaimTemplate")
        if template:
            claim = _claim_from(template, f"{pod_name}-{volume.get('name')}", namespace)
            claim["metadata"]["ownerReferences"] = [owner_reference({"apiVersion": "v1", "kind": "Pod", **pod})]
            yield claim
    owner = next(
        (reference for reference in items_at(metadata, "ownerReferences") if reference.get("kind") == "StatefulSet"),
        None,
    )
    stateful_set = None if owner is None else objects.get("StatefulSet", str(owner.get("name")), namespace)
    if stateful_set is None:
        return
    selector = mapping_at(stateful_set, "spec", "selector", "matchLabels")
    for template in items_at(stateful_set, "spec", "volumeClaimTemplates"):
        claim = _claim_from(template, claim_name(template, pod_name), namespace)
        claim["metadata"]["labels"] = {**mapping_at(claim, "metadata", "labels"), **selector}
        yield claim


def _claim_from(template: Mapping[str, Any], name: str, namespace: str) -> dict[str, Any]:
    made_from = mapping_at(template, "metadata")
    metadata = {field: dict(made_from[field]) for field in ("labels", "annotations") if made_from.get(field)}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {**metadata, "name": name, "namespace": namespace},
        "spec": dict(mapping_at(template, "spec")),
        "status": {"phase": "Pending"},
    }


def _device_claims(pod: Manifest, objects: ControlObjects) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the claims to devices from templates, each with its name in the pod's spec."""
    namespace, pod_name = namespace_of(pod), str(mapping_at(pod, "metadata").get("name") or "")
    for use in items_at(pod, "spec", "resourceClaims"):
        template_name, name = use.get("resourceClaimTemplateName"), str(use.get("name") or "")
        template = objects.get("ResourceClaimTemplate", str(template_name), namespace) if template_name else None
        if template is None:
            continue
        made_from = mapping_at(template, "spec", "metadata")
        metadata = {field: dict(made_from[field]) for field in ("labels", "annotations") if made_from.get(field)}
        yield (
            name,
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {
                    **metadata,
                    "name": generated_name(f"{pod_name}-{name}-", namespace),
                    "namespace": namespace,
                    "ownerReferences": [owner_reference({"apiVersion": "v1", "kind": "Pod", **pod})],
                },
                "spec": dict(mapping_at(template, "spec", "spec")),
            },
        )


def claim_templates_of(pod: Pod, claim_of: Callable[[str], PersistentVolumeClaim | None]) -> list[dict[str, Any]]:
    """Derive the claim templates of a StatefulSet from the claims of one of its pods."""
    templates = []
    for volume in pod.spec.volumes:
        use = volume.persistent_volume_claim
        if use is None or use.claim_name != f"{volume.name}-{pod.metadata.name}":
            continue
        claim = claim_of(f"{pod.metadata.namespace}/{use.claim_name}")
        if claim is not None:
            spec = dict(mapping_at(as_manifest(PERSISTENT_VOLUME_CLAIMS, claim), "spec"))
            # The next claim must find a volume of its own.
            spec.pop("volumeName", None)
            templates.append({"metadata": {"name": volume.name}, "spec": spec})
    return templates


def _kind(claim: Manifest) -> str:
    return str(claim["kind"])


def _key(claim: Manifest) -> str:
    return f"{namespace_of(claim)}/{mapping_at(claim, 'metadata')['name']}"
