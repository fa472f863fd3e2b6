"""The PostFilter extension point, and the dry runs that it offers: pods are removed from nodes, and added back.

Source: staging kube-scheduler/framework/interface.go, v1.36.2.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from podium.cluster import IntArray, Rows, Snapshot
from podium.cluster.snapshot import BoolArray
from podium.config import Extender
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.dry_runs import NodeDryRun
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.status import Code, PluginError, Status, short_repr
from podium.framework.contract.steps import Steps, run_unasked
from podium.objects.core import Pod


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """The result of a PostFilter plugin. A nominated node of "" clears an earlier nomination.

    `victims` are the pods to evict from that node, the most important one first; `violations` of them violate a
    disruption budget. `message` ends the text of the pod's condition and Event if the plugin succeeds.
    """

    nominated_node_name: str
    victims: tuple[Pod, ...] = ()
    message: str = ""
    violations: int = 0

    def __post_init__(self) -> None:
        """Refuse values that cannot be nominated or evicted.

        Raises:
            PluginError: names the field.
        """
        if not isinstance(self.nominated_node_name, str):
            raise PluginError(
                f"PostFilterResult.nominated_node_name: {short_repr(self.nominated_node_name)} is not a text"
            )
        if type(self.victims) is not tuple or not all(isinstance(victim, Pod) for victim in self.victims):
            raise PluginError(f"PostFilterResult.victims: {short_repr(self.victims)} is not a tuple of pods")
        if not isinstance(self.message, str):
            raise PluginError(f"PostFilterResult.message: {short_repr(self.message)} is not a text")
        if type(self.violations) is not int:
            raise PluginError(f"PostFilterResult.violations: {short_repr(self.violations)} is not a number")


class RowsWithNominations(Protocol):
    """Pods that are nominated to nodes, as one attempt sees them. Never changed."""

    def rows_changed_since(self, former: object) -> Collection[int]:
        """Return the rows whose nominations may differ from the former value, at first all that have any."""


class NodesDryRun(Protocol):
    """A dry run on many nodes at once, for filters that depend on the nodes' usage but not on the single pods.

    Raises: `ScheduleError` from `statuses` and `fits`, if a filter fails.
    """

    @property
    def snapshot(self) -> Snapshot:
        """The nodes and pods without the changes of the dry run."""

    @property
    def nominations(self) -> RowsWithNominations:
        """The nominations that count for the incoming pod. Never changed."""

    def name(self, row: int) -> str:
        """Return the node's name."""

    def pods(self, row: int) -> Mapping[str, Pod]:
        """Return the pods of a node by uid, without the changes of the dry run."""

    def usage_of(self, rows: Iterable[int], pods: Iterable[Pod]) -> IntArray:
        """Return the usage that each pod adds to its node, by usage column.

        Shape: (columns, pods). Units: millicores, bytes and counts, as the columns of the snapshot.
        """

    def start(self, rows: Rows, usage: IntArray) -> None:
        """Begin with these rows, and subtract usage from each of them. Rows may repeat; all later ones are of these."""

    def add(self, rows: Rows, usage: IntArray) -> None:
        """Add usage to each of the rows. Rows may repeat."""

    def remove(self, rows: Rows, usage: IntArray) -> None:
        """Subtract usage from each of the rows."""

    def statuses(self, rows: Rows) -> Mapping[int, Status]:
        """Return the rejections of the incoming pod by row. Rows on which it fits are absent."""

    def fits(self, rows: Rows) -> BoolArray:
        """Return, for each of the rows, whether the incoming pod still fits after a change.

        It must have fitted on all of them before.

        Shape: one entry per row of `rows`.
        """


class FilteredNodes(Protocol):
    """The filter result of every node, for PostFilter plugins."""

    def codes(self) -> IntArray:
        """Return the status code by row, also of nodes that were not examined. Shape: one entry per snapshot row."""

    def count(self, code: Code) -> int:
        """Return the number of nodes with this status code."""

    def status(self, row: int) -> Status:
        """Return the status of one row."""

    def pods(self, row: int) -> Iterable[Pod]:
        """Return the pods on one node."""

    def dry_run(self, row: int) -> AbstractContextManager[NodeDryRun]:
        """Begin a dry run on one node. Leaving the context undoes its changes. Only one may be open at a time."""

    def dry_run_of_nodes(self) -> NodesDryRun | None:
        """Begin a dry run on many nodes at once; None if a filter depends on the single pods of a node."""


class PostFilterPlugin(Plugin):
    """Runs when no node fits."""

    @abstractmethod
    def post_filter(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, filtered: FilteredNodes
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Return success if the plugin has helped the pod, Unschedulable if it cannot."""


class AskingPostFilterPlugin(PostFilterPlugin):
    """A PostFilter plugin that calls extenders before it preempts, and pauses for other tasks."""

    @abstractmethod
    def post_filter_asking(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, filtered: FilteredNodes, extenders: Sequence[Extender]
    ) -> Steps[tuple[PostFilterResult | None, Status | None]]:
        """Look for nodes as `post_filter` does, and call these extenders."""

    def post_filter(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, filtered: FilteredNodes
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Return the result without any extender."""
        return run_unasked(self.post_filter_asking(state, pod, snapshot, filtered, ()))
