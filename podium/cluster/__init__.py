"""The cluster as the scheduler sees it: the live cache, and the columnar snapshot that decisions are made on.

Owns which pods count on which node (assume, confirm, forget), columns and indexes over nodes, the node order, and
forks. Never knows plugins, never does I/O, never reads a clock.
"""

from podium.cluster.cache import Cache
from podium.cluster.node_info import NodeInfo
from podium.cluster.pod_states import CacheError
from podium.cluster.pod_usage import HostPort, PodUsage, host_ports, pod_usage, pod_usage_in
from podium.cluster.snapshot import IntArray, Rows, Snapshot

__all__ = [
    "Cache",
    "CacheError",
    "HostPort",
    "IntArray",
    "NodeInfo",
    "PodUsage",
    "Rows",
    "Snapshot",
    "host_ports",
    "pod_usage",
    "pod_usage_in",
]
