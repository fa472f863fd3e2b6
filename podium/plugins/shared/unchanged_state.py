"""PreFilter extensions for plugins whose dry runs go by what PreFilter has found, whatever pods come and go."""

from __future__ import annotations

from podium.cluster import NodeInfo
from podium.framework import contract as fwk
from podium.objects.core import Pod


class UnchangedState(fwk.PreFilterExtensions):
    """Leaves the state as it is."""

    def add_pod(self, state: fwk.CycleState, pod: Pod, pod_to_add: Pod, node: NodeInfo) -> fwk.Status | None:
        """Return success."""
        return None

    def remove_pod(self, state: fwk.CycleState, pod: Pod, pod_to_remove: Pod, node: NodeInfo) -> fwk.Status | None:
        """Return success."""
        return None
