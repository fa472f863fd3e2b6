"""GpuPacking: fills GPUs in use before idle ones, and nodes in use before idle ones.

Runs at: Filter, Score, Reserve, PreBind.
Verdict: Unschedulable for a node without enough free devices.
Requeue: a pod goes, or a node is added or offers more.
Cost: one step for each device of a node whose pods have changed.
Source: the policy GpuPacking of the simulator of Weng et al., "Beware of Fragmentation" (USENIX ATC 2023).
"""

from __future__ import annotations

from podium.cluster import NodeInfo
from podium.framework import contract as fwk
from podium.plugins.contrib.gpu_devices import WHOLE, GpuArgs, GpuDemand, GpuPlugin, pack

_PARTS_ONLY = fwk.MAX_NODE_SCORE
_NODE_IN_USE = fwk.MAX_NODE_SCORE // 2
_IDLE_NODE = fwk.MAX_NODE_SCORE // 3


class GpuPackingArgs(GpuArgs, frozen=True, kw_only=True):
    """The plugin's args."""


class GpuPacking(GpuPlugin):
    """Scores by what the pod would take: parts of GPUs in use, idle GPUs of a node in use, or idle nodes."""

    Args = GpuPackingArgs

    def score_devices(self, node: NodeInfo, free: tuple[int, ...], demand: GpuDemand) -> int:
        """Return 50 to 100 for parts only, 33 to 50 on a node in use, less on an idle one, 0 for a pod without GPUs."""
        if not demand.gpus:
            return 0
        idle_count = free.count(WHOLE)
        if idle_count == len(free):
            return max(_IDLE_NODE - idle_count, 0)
        amounts = [free[device] for device in pack(free, demand)]
        if WHOLE in amounts:
            return max(_NODE_IN_USE - amounts.count(WHOLE), _IDLE_NODE)
        percent = sum(amount * 100 // WHOLE for amount in amounts)
        return max(_PARTS_ONLY - percent // 10, _NODE_IN_USE)
