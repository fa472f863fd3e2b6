"""The claims of generic ephemeral volumes, which belong to their pod and are collected with it.

Source: kubernetes pkg/controller/volume/ephemeral, component-helpers storage/ephemeral (v1.36).
"""

from __future__ import annotations

from typing import Any

from podium.sandbox.controllers.ownership import owner_reference
from podium.sandbox.errors import ApiError
from podium.sandbox.fields import items_at, mapping_at
from podium.sandbox.journal import Record
from podium.sandbox.resources import resource_named
from podium.sandbox.store import Store

Json = dict[str, Any]

VOLUME_CLAIMS = resource_named("persistentvolumeclaims")


def has_ephemeral_volumes(pod: Json) -> bool:
    """Return whether a volume of the pod has a claim that is made for it."""
    return any(volume.get("ephemeral") for volume in items_at(pod, "spec", "volumes"))


def give_claims(store: Store, pod: Record) -> bool:
    """Create the claims that the pod's ephemeral volumes lack. Returns whether to retry without a further change."""
    namespace, pod_name = pod.key
    for volume in items_at(pod.obj, "spec", "volumes"):
        template = mapping_at(volume, "ephemeral", "volumeClaimTemplate")
        name = f"{pod_name}-{volume.get('name', '')}"
        # A claim of that name that is another's stays: the pod waits until it is gone.
        if not template or (namespace, name) in store.collection(VOLUME_CLAIMS).records:
            continue
        template_metadata = {field: mapping_at(template, "metadata", field) for field in ("labels", "annotations")}
        metadata: Json = {field: values for field, values in template_metadata.items() if values}
        metadata |= {"name": name, "ownerReferences": [owner_reference(pod.obj)]}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
        try:
            store.create(claim | {"spec": mapping_at(template, "spec")}, namespace=namespace)
        except ApiError:
            return True
    return False
