"""The dry run of an attempt's filters on one node: pods are removed from it, and added back.

Source: staging kube-scheduler/framework/interface.go, v1.36.2.
"""

from __future__ import annotations

from typing import Protocol

from podium.cluster import NodeInfo
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.status import Status
from podium.objects.core import Pod


class NodeDryRun(Protocol):
    """A dry run on one node, in a fork of the snapshot: pods can be removed and added back.

    Raises: `PluginError` from `add` and `remove`, if a plugin's AddPod or RemovePod fails.
    """

    @property
    def node(self) -> NodeInfo:
        """The node's state in the dry run."""

    @property
    def state(self) -> CycleState:
        """The dry run's copy of what plugins keep for the attempt, changed by each `remove` and `add`."""

    def remove(self, pod: Pod) -> None:
        """Take a pod off the node. Of a pod on another node, which leaves with one of this node, only plugins hear."""

    def add(self, pod: Pod) -> None:
        """Put back a pod that was removed."""

    def status(self) -> Status | None:
        """Return the filters' status for the incoming pod: None if it fits, an Error if a filter fails."""
