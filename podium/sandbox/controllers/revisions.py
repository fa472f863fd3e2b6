"""The templates that a StatefulSet or DaemonSet has had, as ControllerRevisions.

Source: kubernetes pkg/controller/history (v1.36).
Differs: names end with another hash than upstream's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any

import orjson

from podium.sandbox.controllers.ownership import owner_reference
from podium.sandbox.fields import mapping_at
from podium.sandbox.journal import Record
from podium.sandbox.resources import resource_named
from podium.sandbox.store import Store

Json = dict[str, Any]

REVISIONS = resource_named("controllerrevisions")
HASH_LABEL = "controller-revision-hash"


def template_hash(template: Json) -> str:
    """Return a short text that tells pod templates apart."""
    return hashlib.sha256(orjson.dumps(template, option=orjson.OPT_SORT_KEYS)).hexdigest()[:10]


def newest_revision(store: Store, workload: Json) -> Json:
    """Return the revision of the workload's template, which is its newest; created if it does not exist yet.

    Raises:
        ApiError: the store refuses the revision.
    """
    metadata, template = workload["metadata"], workload["spec"]["template"]
    digest = template_hash(template)
    history = _history(store, workload)
    number = max((revision.obj.get("revision", 0) for revision in history), default=0)
    match = next((revision for revision in history if _hash_of(revision.obj) == digest), None)
    if match is not None:
        if match.obj.get("revision", 0) == number:
            return match.obj
        renewed = match.obj | {"metadata": dict(match.obj["metadata"]), "revision": number + 1}
        return store.replace_record(REVISIONS, match, renewed).obj
    labels = mapping_at(template, "metadata", "labels") | {HASH_LABEL: digest}
    manifest = {
        "apiVersion": REVISIONS.api_version,
        "kind": REVISIONS.kind,
        "metadata": {
            "name": f"{metadata['name']}-{digest}",
            "labels": labels,
            "ownerReferences": [owner_reference(workload)],
        },
        "data": {"spec": {"template": template | {"$patch": "replace"}}},
        "revision": number + 1,
    }
    return store.create(manifest, namespace=metadata["namespace"])


def revision_named(store: Store, workload: Json, name: str) -> Json | None:
    """Return the workload's revision of that name, or None if it does not exist."""
    return next((revision.obj for revision in _history(store, workload) if revision.key[1] == name), None)


def template_of(revision: Json) -> Json:
    """Return the pod template that a revision keeps."""
    template = mapping_at(revision, "data", "spec", "template")
    return {name: value for name, value in template.items() if name != "$patch"}


def forget_old(store: Store, workload: Json, names_in_use: Collection[str]) -> None:
    """Delete the oldest revisions beyond the limit that no pod has.

    Args:
        names_in_use: the hashes, or whole names, of the revisions to keep.
    """
    history = sorted(_history(store, workload), key=lambda revision: int(revision.obj.get("revision", 0)))
    unused = [
        revision
        for revision in history
        if revision.key[1] not in names_in_use and _hash_of(revision.obj) not in names_in_use
    ]
    for revision in unused[: max(0, len(unused) - int(workload["spec"].get("revisionHistoryLimit", 10)))]:
        store.delete_record(REVISIONS, revision, {})


def _history(store: Store, workload: Json) -> list[Record]:
    metadata = workload["metadata"]
    return [
        record
        for (namespace, _), record in store.collection(REVISIONS).records.items()
        if namespace == metadata["namespace"]
        and any(owner.get("uid") == metadata["uid"] for owner in record.obj["metadata"].get("ownerReferences") or ())
    ]


def _hash_of(revision: Json) -> str:
    return str(mapping_at(revision, "metadata", "labels").get(HASH_LABEL, ""))
