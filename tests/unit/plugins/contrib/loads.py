"""A plugin of measured loads on a small cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.plugin import Plugin
from podium.framework.profile.plugin_args import typed_args
from podium.objects.core import Node, Pod
from podium.testing import RecordingHandle, snapshot_of

STATE = CycleState()
WATCHER = {"watcherAddress": "http://watcher:2020"}


def made(plugin: type[Plugin], *objects: Any, args: Mapping[str, Any] = WATCHER) -> Any:
    """The plugin, with the nodes, their pods and the metrics that are among the objects."""
    snapshot = snapshot_of(
        *(item for item in objects if isinstance(item, Node | Pod) and getattr(item, "node_name", 1))
    )
    return plugin(typed_args(plugin, args), RecordingHandle(snapshot, objects))


def scores(plugin: Any, pod: Pod) -> dict[str, int]:
    """The raw score of each node, which must be the same in both forms."""
    snapshot = plugin.handle.snapshot()
    values = plugin.score_rows(STATE, pod, snapshot, snapshot.order).tolist()
    assert values == [plugin.score(STATE, pod, node) for node in snapshot]
    return {node.name: value for node, value in zip(snapshot, values, strict=True)}
