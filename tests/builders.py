"""The builders that podium gives to its users, for its own tests too, and clusters of what they build."""

from __future__ import annotations

from podium.cluster import Cache, Snapshot
from podium.cluster.cache import ReportBroken
from podium.objects.core import Node, Pod
from podium.testing.builders import REGION_LABEL, ZONE_LABEL, node, pod, pod_group

__all__ = ["REGION_LABEL", "ZONE_LABEL", "cache_of", "node", "pod", "pod_group", "snapshot_of"]


def _must_be_readable(item: Node | Pod, error: Exception) -> None:
    raise AssertionError(f"{item.key}: {error}")


def snapshot_of(*items: Node | Pod, report: ReportBroken = _must_be_readable) -> Snapshot:
    """The snapshot of a cluster with these nodes, in this order from row 0 on, and these pods on them."""
    return cache_of(*items, report=report).snapshot()


def cache_of(*items: Node | Pod, report: ReportBroken = _must_be_readable) -> Cache:
    """A cache with these nodes and pods; unless the test says otherwise, all of them must be readable."""
    cache = Cache(report)
    for item in items:
        if isinstance(item, Node):
            cache.put_node(item)
        else:
            cache.add_pod(item)
    return cache
