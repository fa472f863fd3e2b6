"""Asks the plugin why nodes have no devices for a pod's claims, and groups the nodes by equal reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from podium.cluster import Rows, Snapshot
from podium.devices.refusals import NodeRefusal
from podium.framework.contract.status import Status
from podium.framework.profile.runtime import Framework
from podium.objects.core import Pod
from podium.plugins.dynamic_resources.plugin import DynamicResources

_EXAMPLES: Final = 3
DEVICES: Final = DynamicResources.name
"""The plugin that rejects nodes without the devices that a pod claims."""


@dataclass(frozen=True, slots=True)
class DeviceGroup:
    """The nodes that have no devices for a pod for the same reason.

    Attributes:
        text: the reason, by request.
        nodes: the refusal of each node by name: which pods have which devices, and counts of the rest.
    """

    text: str
    nodes: Mapping[str, NodeRefusal]

    @property
    def count(self) -> int:
        """The number of nodes."""
        return len(self.nodes)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The parts of the text."""
        return next(iter(self.nodes.values())).reasons

    @property
    def examples(self) -> tuple[str, ...]:
        """The first few nodes."""
        return tuple(self.nodes)[:_EXAMPLES]

    def as_dict(self) -> dict[str, Any]:
        """Return the group as JSON values."""
        return {
            "text": self.text,
            "reasons": list(self.reasons),
            "count": self.count,
            "examples": list(self.examples),
            "nodes": {name: refusal.as_dict() for name, refusal in self.nodes.items()},
        }


def device_refusals(
    framework: Framework, pod: Pod, snapshot: Snapshot, statuses: Iterable[tuple[int, Status]]
) -> Mapping[str, NodeRefusal]:
    """Return why nodes that DynamicResources has rejected have no devices for the pod, by name.

    Args:
        statuses: of the rejected nodes, by row. Those of other plugins are left out.
    """
    rows = sorted({row for row, status in statuses if status.plugin == DEVICES})
    return _explain(framework, pod, snapshot, np.array(rows, np.intp)) if rows else {}


def device_errors(framework: Framework, pod: Pod, snapshot: Snapshot) -> Mapping[str, NodeRefusal]:
    """Return the refusals by node name where the search for devices itself fails."""
    refusals = _explain(framework, pod, snapshot, snapshot.order)
    return {name: refusal for name, refusal in refusals.items() if refusal.error}


def _explain(framework: Framework, pod: Pod, snapshot: Snapshot, rows: Rows) -> Mapping[str, NodeRefusal]:
    plugin = framework.plugins.get(DEVICES)
    if not isinstance(plugin, DynamicResources):
        return {}
    refusals = plugin.explain_nodes(pod, snapshot, rows)
    return {snapshot.name(row): refusal for row, refusal in refusals.items()}


def group_by_devices(refusals: Mapping[str, NodeRefusal]) -> tuple[DeviceGroup, ...]:
    """Group the nodes by reason, the most frequent first."""
    groups: dict[str, dict[str, NodeRefusal]] = {}
    for name, refusal in sorted(refusals.items()):
        groups.setdefault(refusal.text, {})[name] = refusal
    in_turn = (DeviceGroup(text, nodes) for text, nodes in groups.items())
    return tuple(sorted(in_turn, key=lambda group: (-group.count, group.text)))
