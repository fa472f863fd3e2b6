"""Answers the questions that people ask most about a cluster: how many more pods fit, why one is pending, what helps.

Owns `podium.Cluster`: the engine's cluster with these questions as methods. Each is answered on a fork or by a dry run
that is undone, so questions change nothing. Does no I/O, except that `running_cluster` lists a cluster, and
`room.carrying_out` moves pods.
"""

from podium.engine.device_refusals import DeviceGroup
from podium.engine.gang_story import GangStory
from podium.insight.capacity import Capacity, GangCapacity, Headroom, NodeCapacity
from podium.insight.cluster import Cluster
from podium.insight.edits import Edit, EditKind
from podium.insight.fixes import Fixes
from podium.insight.gang_states import GangEdit, GangFix
from podium.insight.search import Fix
from podium.insight.why import Blocker, Group, NodeScore, Why

__all__ = [
    "Blocker",
    "Capacity",
    "Cluster",
    "DeviceGroup",
    "Edit",
    "EditKind",
    "Fix",
    "Fixes",
    "GangCapacity",
    "GangEdit",
    "GangFix",
    "GangStory",
    "Group",
    "Headroom",
    "NodeCapacity",
    "NodeScore",
    "Why",
]
