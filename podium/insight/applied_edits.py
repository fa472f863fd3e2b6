"""Applies edits of nodes, evictions and added nodes to a fork of the cluster."""

from __future__ import annotations

from collections.abc import Iterable

from podium.engine.cluster import Cluster
from podium.engine.errors import ManifestError
from podium.insight.edits import Edit, EditKind, node_manifest
from podium.objects.resource_types import NODES


class EditsDoNotApplyError(Exception):
    """The node of an edit is missing, or not as the edit expects it."""


def apply_edits(world: Cluster, edits: Iterable[Edit]) -> None:
    """Apply these edits to the cluster; edits of pods are left to the caller.

    Raises:
        EditsDoNotApplyError.
    """
    edits = list(edits)
    changes: dict[str, list[Edit]] = {}
    for edit in edits:
        if edit.object_kind == "Node" and edit.manifest is None:
            changes.setdefault(edit.name, []).append(edit)
    try:
        for name, of_node in changes.items():
            node = world.store.get(NODES, name)
            if node is None:
                raise EditsDoNotApplyError
            # All changes of a node at once: each patch was made for the node as it is, and indexes into its taints.
            world.replace(node_manifest(node, (part for change in of_node for part in change.patch)))
    except (KeyError, IndexError, ManifestError) as error:
        raise EditsDoNotApplyError from error
    for edit in edits:
        if edit.kind is EditKind.EVICT:
            world.remove("Pod", edit.name, edit.namespace)
        elif edit.manifest is not None:
            for manifest in edit.stand_ins or (edit.manifest,):
                world.add(manifest)
