"""Edits applied to manifests by another implementation of JSON Patch than podium's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from podium.insight import Cluster
from podium.insight.edits import Edit, EditKind
from podium.sandbox.errors import ApiError
from podium.sandbox.patches import json_patch

Json = dict[str, Any]


def apply_edits_to_objects(objects: Sequence[Json], pod: Json, edits: Iterable[Edit]) -> tuple[list[Json], Json]:
    """The objects and the pod after the edits."""
    items = list(objects)
    for edit in edits:
        if edit.manifest is not None:
            items.append(dict(edit.manifest))
        elif edit.kind is EditKind.EVICT:
            items = [target for target in items if not _is(target, edit)]
        elif _is(pod, edit):
            pod = json_patch(pod, [dict(operation) for operation in edit.patch])
        else:
            items = [
                json_patch(target, [dict(op) for op in edit.patch]) if _is(target, edit) else target for target in items
            ]
    return items, pod


def placed_on(objects: Sequence[Json], pod: Json, edits: Iterable[Edit] = ()) -> str | None:
    """Return the node on which a new cluster with the edits places the pod; None also if an edit cannot be applied."""
    try:
        items, target = apply_edits_to_objects(objects, pod, edits)
    except ApiError:
        return None
    return Cluster.load(items).place({**target, "spec": {**target["spec"], "preemptionPolicy": "Never"}}).node


def _is(item: Json, edit: Edit) -> bool:
    meta = item["metadata"]
    return (item["kind"], meta.get("namespace", "") if edit.namespace else "", meta["name"]) == (
        edit.object_kind,
        edit.namespace,
        edit.name,
    )
