"""The extension points that reject nodes: PreFilter and Filter.

Filtering has two forms. The table form answers for many rows of the snapshot at once; the node form looks at one node.
A plugin with both forms must give the same answers in both.

Source: staging kube-scheduler/framework/interface.go, v1.36.2.
Differs: the table form is podium's own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.status import PluginError, Status, short_repr
from podium.objects.core import Pod


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """The only nodes that need to be filtered."""

    node_names: frozenset[str]

    def __post_init__(self) -> None:
        """Refuse anything but a set. A string would be read as a set of one-letter names.

        Raises:
            PluginError: the names are not a set of strings.
        """
        names: object = self.node_names
        if not isinstance(names, frozenset | set) or not all(isinstance(name, str) for name in names):
            raise PluginError(f"PreFilterResult.node_names: {short_repr(names)} is not a set of names")


@dataclass(frozen=True, slots=True)
class OnlyRows:
    """Written to the cycle state by a PreFilter: the search looks at no other rows of the snapshot than these.

    As a `PreFilterResult`, at no cost for the nodes that are left out.

    Attributes:
        rows: in node order.
        rejection: the status of every other node, with the name of the plugin.
    """

    rows: Rows
    rejection: Status


class PreFilterExtensions(ABC):
    """Updates a PreFilter's state when a dry run adds a pod to a node or removes one from it."""

    @abstractmethod
    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status | None:
        """Update the state: `added` is now on the node."""

    @abstractmethod
    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status | None:
        """Update the state: `removed` is no longer on the node."""


class PreFilterPlugin(Plugin):
    """Looks at the pod and the whole cluster once, before any node is filtered."""

    @abstractmethod
    def pre_filter(
        self, state: CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        """Narrow the nodes down (None: all nodes), reject the pod, or return Skip to skip this plugin's Filter."""

    def pre_filter_extensions(self) -> PreFilterExtensions | None:
        """Return the AddPod and RemovePod extensions, or None if the state does not depend on other pods."""
        return None


class FilterPlugin(Plugin):
    """Rejects nodes, one at a time."""

    @abstractmethod
    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Return success, Unschedulable, UnschedulableAndUnresolvable or Error for the node."""


class TableFilterPlugin(Plugin):
    """Rejects nodes, many at a time."""

    @abstractmethod
    def filter_rows(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Return a verdict for each row: 0 if the node passes, else a code of the plugin's own for `explain`.

        Returns:
            None if every row passes.

        Shape: one entry per row of `rows`.
        """

    @abstractmethod
    def explain(self, state: CycleState, pod: Pod, verdict: int) -> Status:
        """Return the status for a verdict other than 0. It must not depend on the row."""


@runtime_checkable
class Detailing(Protocol):
    """A plugin that can give details about the nodes that its Filter rejected, or all nodes after its PreFilter."""

    def rejection_details(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> Mapping[str, int]:
        """Return the details of these rejections, each with the number of nodes that it applies to."""
        ...
