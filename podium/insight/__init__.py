"""The questions that people ask most about a cluster: how many more fit, why a pod is pending, what would help.

Owns `podium.Cluster`: the engine's cluster with these questions as methods. Each is answered on a fork or by a dry run
that is undone, so asking changes nothing. Never does I/O.
"""

from podium.insight.capacity import Capacity, Headroom, NodeCapacity
from podium.insight.cluster import Cluster

__all__ = ["Capacity", "Cluster", "Headroom", "NodeCapacity"]
