"""The default StorageClass of PersistentVolumeClaims.

Source: kubernetes plugin/pkg/admission/storage/storageclass/setdefault, pkg/volume/util/storageclass.go (v1.36).
"""

from __future__ import annotations

from typing import Any

from podium.sandbox.admission.lookup import Lookup
from podium.sandbox.fields import mapping_at

Json = dict[str, Any]

_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_IS_DEFAULT = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def set_default_class(claim: Json, lookup: Lookup) -> None:
    """Name the default StorageClass in a claim that names none, in place: of several the newest, then the first."""
    if "storageClassName" in claim["spec"] or _BETA_CLASS in mapping_at(claim, "metadata", "annotations"):
        return
    defaults = [
        storage_class["metadata"] for storage_class in lookup.all_of("storageclasses") if _is_default(storage_class)
    ]
    newest = max((metadata.get("creationTimestamp") or "" for metadata in defaults), default="")
    names = [metadata["name"] for metadata in defaults if (metadata.get("creationTimestamp") or "") == newest]
    if names:
        claim["spec"]["storageClassName"] = min(names)


def _is_default(storage_class: Json) -> bool:
    annotations = mapping_at(storage_class, "metadata", "annotations")
    return any(annotations.get(name) == "true" for name in _IS_DEFAULT)
