"""The order in which nodes are examined: round-robin over zones.

Source: kubernetes pkg/scheduler/backend/cache/node_tree.go and component-helpers node/topology/helpers.go, v1.36.2.
"""

from __future__ import annotations

import sys

from podium.objects.core import Node
from podium.objects.topology_labels import BETA_REGION, BETA_ZONE, REGION, ZONE

_REGION_LABELS = (BETA_REGION, REGION)
_ZONE_LABELS = (BETA_ZONE, ZONE)


def zone_of(node: Node) -> str:
    """Return the key of the node's region and zone; nodes with neither share the empty key."""
    labels = node.metadata.labels
    region = next((labels[key] for key in _REGION_LABELS if key in labels), "")
    zone = next((labels[key] for key in _ZONE_LABELS if key in labels), "")
    return f"{region}:\x00:{zone}" if region or zone else ""


class NodeTree:
    """Names of nodes by zone; zones in the order they were first seen, nodes in the order they came."""

    def __init__(self) -> None:
        self._zones: dict[str, dict[str, None]] = {}
        self._zone_of: dict[str, str] = {}

    def put(self, node: Node) -> None:
        """Add the node, or move it if its zone has changed."""
        zone = zone_of(node)
        former_zone = self._zone_of.get(node.name)
        if former_zone == zone:
            return
        if former_zone is not None:
            self.remove(node.name)
        # The nodes of a zone share its key.
        self._zone_of[node.name] = zone = sys.intern(zone)
        self._zones.setdefault(zone, {})[node.name] = None

    def remove(self, name: str) -> None:
        """Remove the node. A zone without nodes is forgotten."""
        zone = self._zone_of.pop(name)
        names = self._zones[zone]
        del names[name]
        if not names:
            del self._zones[zone]

    def copy(self) -> NodeTree:
        """Return an independent copy."""
        twin = NodeTree()
        twin._zones = {zone: dict(names) for zone, names in self._zones.items()}
        twin._zone_of = dict(self._zone_of)
        return twin

    def order(self) -> list[str]:
        """Return all names: the first of each zone, then the second of each, and so on."""
        zones = [list(names) for names in self._zones.values()]
        longest = max(map(len, zones), default=0)
        return [names[index] for index in range(longest) for names in zones if index < len(names)]
