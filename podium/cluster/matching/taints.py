"""The taints that keep a pod off a node, and the taint that stands for a cordon.

Source: kubernetes pkg/scheduler/framework/plugins/tainttoleration and nodeunschedulable, v1.36.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from podium.objects.core import Taint, Toleration
from podium.objects.tolerations import is_tolerated

CORDONED: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
# PreferNoSchedule only lowers a node's score.
_HARD_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})


def is_repelled(tolerations: Sequence[Toleration], taints: Sequence[Taint]) -> bool:
    """Return True if one of the taints is NoSchedule or NoExecute and not tolerated."""
    return any(taint.effect in _HARD_EFFECTS and not is_tolerated(tolerations, taint) for taint in taints)
