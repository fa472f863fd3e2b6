"""The columnar snapshot of the cluster that one scheduling attempt decides on.

Owns one row per node: columns of integers, label and taint ids, port and image indexes, the pods, and the node order.
Changes only through `put_node`, `drop_node`, `add_pod`, `remove_pod` and `replace_pod`: the cache applies its log of
changes at the start of a cycle; dry runs and questions apply theirs to a `fork`.

Source: kubernetes pkg/scheduler/backend/cache/snapshot.go and framework/types.go (NodeInfo), v1.36.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podium.cluster.columns import LentArray, SpareArrays, read_only, widen
from podium.cluster.existing_terms import ExistingTerms, TermCounter
from podium.cluster.fork_point import ForkPoint
from podium.cluster.host_ports import HostPortIndex
from podium.cluster.images import ImageIndex
from podium.cluster.labels import LabelColumn, LabelColumns
from podium.cluster.node_info import NodeInfo
from podium.cluster.node_tree import NodeTree
from podium.cluster.pod_changes import looks_the_same
from podium.cluster.pod_counts import CHANGES_KEPT, PodCounter, PodCounts
from podium.cluster.pod_usage import PodUsage
from podium.cluster.pod_usages import PodUsages
from podium.cluster.volumes_in_use import VolumesInUse
from podium.lib.change_log import ChangeLog
from podium.objects.core import Node, Pod, Taint
from podium.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY

IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = NDArray[np.intp]
"""Row numbers, in the order in which the nodes are looked at."""

_POD_COUNT, _NONZERO_CPU, _NONZERO_MEMORY, _FIRST_RESOURCE = range(4)
_ROWS_AT_FIRST = 16
_ALL_ROWS: Final = slice(None)
_FEW_USAGES: Final = 16

TAINT_SETS_KEPT: Final = 256
"""How many sets of taints, in use or not, there may be before unused ones are dropped."""


class Snapshot:
    """One row per node.

    Shape: columns are arrays over all rows, which cannot be written to; rows of no node hold zeros. `order` lists the
    rows of all nodes in the order in which attempts look at them, or of some nodes in a fork that is `restricted_to`
    these. It is not `range(len(snapshot))`: a deleted node leaves its row empty until another one takes it. No row from
    `row_end` on has ever had a node: sums over rows can end there.
    `changes_kept` is how many changes forks and caches can catch up with or undo; beyond that they begin anew.
    Units: columns of resources hold millicores of cpu, bytes of memory and storage, and counts of any other resource.
    Invariant: a row keeps its node until the node is dropped; then the row may be given to another.
    """

    def __init__(self, changes_kept: int = CHANGES_KEPT) -> None:
        self.order: Rows = np.empty(0, np.intp)
        self.row_end = 0
        self.row_of: dict[str, int] = {}
        self.nodes: list[Node | None] = []
        self.pods: list[Mapping[str, Pod]] = []
        self._unschedulable: BoolArray = np.zeros(0, np.bool_)
        self._taint_set_ids: NDArray[np.int32] = np.zeros(0, np.int32)
        self.taint_sets: list[tuple[Taint, ...]] = [()]
        self.host_ports = HostPortIndex()
        self.images = ImageIndex()
        self.node_changes: ChangeLog[int] = ChangeLog(changes_kept)
        """The rows whose nodes were added, removed, or changed in a way that can matter to a pod."""
        self.usage_changes: ChangeLog[int] = ChangeLog(changes_kept)
        """The rows whose usage has changed; not those where a pod's labels have, or it has begun to terminate."""
        self.pod_updates: ChangeLog[int] = ChangeLog(changes_kept)
        """The rows where a pod has changed in any way but its usage."""
        self.closed: Mapping[int, str] = {}
        """The rows of closed nodes, which take no new pods, and why: something there cannot be parsed in full."""
        self.pod_counts: PodCounter = PodCounts(self.pods, changes_kept)
        self.existing_terms: TermCounter = ExistingTerms(self.pods)
        self.volumes_in_use = VolumesInUse()
        self._allowed_pods: IntArray = np.zeros(0, np.int64)
        self._allocatable: IntArray = np.zeros((3, 0), np.int64)
        self._usage: IntArray = np.zeros((_FIRST_RESOURCE + 3, 0), np.int64)
        self._resource_index = {CPU: 0, MEMORY: 1, EPHEMERAL_STORAGE: 2}
        self._labels = LabelColumns(0)
        self._taint_set_id: dict[tuple[Taint, ...], int] = {(): 0}
        self._taint_sets_max = TAINT_SETS_KEPT
        self._settled_at = 0
        self._tree = NodeTree()
        self._free_rows: list[int] = []
        self._order_is_stale = False
        self._is_fork = False
        self.fork_point: ForkPoint[Snapshot] | None = None
        self._shares_nodes = self._shares_pods = False
        self._pod_usages = PodUsages()
        self._spare = SpareArrays()
        self._lent: LentArray | None = None
        self._show()

    # ------------------------------------------------------------ questions

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.row_of)

    @property
    def is_fork(self) -> bool:
        """The snapshot is a fork of another one."""
        return self._is_fork

    def __iter__(self) -> Iterator[NodeInfo]:
        """Return every node, in the order in which attempts look at them."""
        return map(self.node, self.order.tolist())

    def node(self, row: int) -> NodeInfo:
        """Return one node's view of the columns.

        Args: `row` is one of `order` or `row_of`. Deleted nodes leave rows without a node.
        """
        return NodeInfo(self, row)

    def name(self, row: int) -> str:
        """Return the name of the row's node."""
        node = self.nodes[row]
        assert node is not None, f"row {row} has no node"
        return node.metadata.name

    def pod_usage(self, row: int, pod: Pod) -> PodUsage:
        """Return the usage of a pod on the row's node."""
        return self._pod_usages.of(row, pod)

    def pod_usages(self, rows: Iterable[int], pods: Iterable[Pod]) -> Sequence[PodUsage]:
        """Return the usage of each pod on its row's node."""
        return self._pod_usages.of_each(rows, pods)

    @property
    def allowed_pods(self) -> IntArray:
        """The number of pods that each node allows."""
        return self._shown_allowed_pods

    @property
    def pod_count(self) -> IntArray:
        """The number of pods on each node."""
        return self._usage_row(_POD_COUNT)

    def allocatable(self, resource: str) -> IntArray:
        """Return each node's allocatable amount of the resource; zeros if no node has it."""
        index = self._resource_index.get(resource)
        return self._shown_allocatable[index] if index is not None else np.zeros(len(self.nodes), np.int64)

    def requested(self, resource: str) -> IntArray:
        """Return the amount of the resource that the pods on each node request; zeros if no node has ever had it."""
        index = self._resource_index.get(resource)
        return self._shown_usage[_FIRST_RESOURCE + index] if index is not None else np.zeros(len(self.nodes), np.int64)

    def nonzero_requested(self, resource: str) -> IntArray:
        """Return the requests like `requested`, with a default amount for containers that request no cpu or memory."""
        if resource == CPU:
            return self._usage_row(_NONZERO_CPU)
        if resource == MEMORY:
            return self._usage_row(_NONZERO_MEMORY)
        return self.requested(resource)

    def allocatable_on(self, row: int, resource: str) -> int:
        """Return one node's allocatable amount of the resource."""
        index = self._resource_index.get(resource)
        return self._allocatable.item(index, row) if index is not None else 0

    def requested_on(self, row: int, resource: str) -> int:
        """Return the amount of the resource that the pods on one node request."""
        index = self._resource_index.get(resource)
        return self._usage.item(_FIRST_RESOURCE + index, row) if index is not None else 0

    def nonzero_requested_on(self, row: int, resource: str) -> int:
        """Return the requests like `requested_on`, with a default for containers without cpu or memory requests."""
        if resource == CPU:
            return self._usage.item(_NONZERO_CPU, row)
        if resource == MEMORY:
            return self._usage.item(_NONZERO_MEMORY, row)
        return self.requested_on(row, resource)

    def label_column(self, key: str) -> LabelColumn:
        """Return the values of one label over all rows. Cost: one pass over the nodes the first time a key is used."""
        column = self._labels.get(key)
        if column is not None:
            return column
        return self._labels.build(key, [node.metadata.labels if node else None for node in self.nodes])

    # ------------------------------------------------------------ changes

    def put_node(self, node: Node, allocatable: Mapping[str, int], allowed_pods: int) -> None:
        """Add the node, or update its row."""
        self._own_nodes()
        row = self.row_of.get(node.name)
        if row is None:
            row = self._take_row()
            self.row_of[node.name] = row
            self._order_is_stale = True
            self.images.add(row, node)
        else:
            former_node = self.nodes[row]
            assert former_node is not None
            if former_node.status.images != node.status.images:
                self.images.remove(row, former_node)
                self.images.add(row, node)
        self.node_changes.append(row)
        self._tree.put(node)
        self.nodes[row] = node
        self._unschedulable[row] = node.spec.unschedulable
        self._taint_set_ids[row] = self._taint_set(node.spec.taints)
        self._labels.set(row, node.metadata.labels)
        self._allowed_pods[row] = allowed_pods
        self._offer(allocatable)
        self._allocatable[:, row] = 0
        for resource, amount in allocatable.items():
            self._allocatable[self._resource_index[resource], row] = amount

    def close_node(self, name: str, why: str) -> None:
        """Close the node to new pods; an empty reason opens it again."""
        self._own_nodes()
        row = self.row_of[name]
        self.node_changes.append(row)
        reasons_of_others = {other_row: reason for other_row, reason in self.closed.items() if other_row != row}
        self.closed = {**reasons_of_others, row: why} if why else reasons_of_others

    def drop_node(self, name: str) -> None:
        """Remove the node and its pods."""
        self._own_nodes()
        if self.closed:
            self.close_node(name, "")
        row = self.row_of.pop(name)
        node = self.nodes[row]
        assert node is not None
        self.node_changes.append(row)
        self._tree.remove(name)
        self._order_is_stale = True
        self.images.remove(row, node)
        for pod in self.pods[row].values():
            self.host_ports.remove(row, self._pod_usages.pop(row, pod).host_ports)
            self._take_out_of_indexes(row, pod)
        self.nodes[row], self.pods[row] = None, {}
        self._unschedulable[row], self._taint_set_ids[row], self._allowed_pods[row] = False, 0, 0
        self._labels.set(row, {})
        self._allocatable[:, row] = 0
        self._usage[:, row] = 0
        self._free_rows.append(row)

    def add_pod(self, row: int, pod: Pod, pod_usage: PodUsage) -> None:
        """Put a pod on the row's node."""
        uid = pod.uid
        assert uid not in self.pods[row], f"{pod.key} is on {self.name(row)} already"
        # A new mapping, not a change: forks share it.
        self.pods[row] = {**self.pods[row], uid: pod}
        self._pod_usages.put(row, pod, pod_usage)
        self._count(row, pod_usage, 1)
        if pod_usage.host_ports:
            self.host_ports.add(row, pod_usage.host_ports)
        self._put_into_indexes(row, pod)

    def remove_pod(self, row: int, uid: str) -> Pod:
        """Take a pod off the row's node and return it."""
        self.pods[row] = pods = dict(self.pods[row])
        pod = pods.pop(uid)
        pod_usage = self._pod_usages.pop(row, pod)
        self._count(row, pod_usage, -1)
        if pod_usage.host_ports:
            self.host_ports.remove(row, pod_usage.host_ports)
        self._take_out_of_indexes(row, pod)
        return pod

    def replace_pod(self, row: int, pod: Pod, pod_usage: PodUsage) -> None:
        """Replace a pod on the row's node by a newer state of it."""
        uid, former_pods = pod.uid, self.pods[row]
        former_pod = former_pods[uid]
        if self._pod_usages.of(row, former_pod) != pod_usage:
            self.remove_pod(row, uid)
            self.add_pod(row, pod, pod_usage)
            return
        self._pod_usages.put(row, pod, pod_usage)
        self.pod_updates.append(row)
        if looks_the_same(former_pod, pod):
            self.pods[row] = {**former_pods, uid: pod}
        else:
            # An API server labels a pod with its node's topology when it is bound, so this happens to most pods.
            current_pods = self.pods[row] = dict(former_pods)
            del current_pods[uid]
            self._take_out_of_indexes(row, former_pod)
            current_pods[uid] = pod
            self._put_into_indexes(row, pod)

    def settle(self) -> None:
        """Update `order` after nodes were added or removed. A change of zone alone does not change it, as upstream.

        Also drops label values and taint sets that no node has any more, if there are too many of them.
        """
        if self._settled_at != self.node_changes.end:
            self._settled_at = self.node_changes.end
            self._labels.settle()
            if len(self.taint_sets) > self._taint_sets_max:
                self._forget_taint_sets()
        # Not on every change: thousands of nodes may be added before the next attempt.
        if self._order_is_stale:
            self.order = np.array([self.row_of[name] for name in self._tree.order()], np.intp)
            self.order.setflags(write=False)  # handed to plugins as it is
            self._order_is_stale = False

    def fork(self) -> Snapshot:
        """Return a fork: changes of its nodes and pods do not affect this snapshot.

        Invariant: until the fork's own nodes change, it is valid until a node of the original is added, changed or
        removed. Pods of the original may be added and removed.
        Cost: one copy of the usage columns and of the list of pods, about 60 µs at 5,000 nodes; with the first change
        of a node a copy of the columns of nodes.
        """
        twin = self.fork_usage()
        twin._shares_pods = False
        twin.pods, twin.pod_updates = list(self.pods), self.pod_updates.branch()
        twin.pod_counts = self.pod_counts.fork(twin.pods)
        twin.existing_terms = self.existing_terms.fork(twin.pods)
        twin._pod_usages = self._pod_usages.copy()
        twin.host_ports = self.host_ports.copy()
        twin.volumes_in_use = self.volumes_in_use.copy()
        return twin

    def restricted_to(self, rows: Rows) -> Snapshot:
        """Return a fork whose `order` is only these rows for attempts. Plugins still see all nodes."""
        twin = self.fork()
        twin.order = read_only(rows)
        return twin

    def fork_usage(self, rows: Rows | slice = _ALL_ROWS, amounts: IntArray | None = None) -> Snapshot:
        """Return a fork that only `add_usage` may change: pods are shared, and of rows but these usage is undefined.

        Args: `amounts` are added to the usage of these rows; see `usage_of`.
        Cost: one copy of the usage columns.
        """
        twin = object.__new__(Snapshot)
        twin.__dict__.update(self.__dict__)
        twin._is_fork = twin._shares_nodes = twin._shares_pods = True
        twin.fork_point, twin.usage_changes = None, self.usage_changes.branch()
        if rows is _ALL_ROWS:
            twin._usage = self._usage.copy()
        else:
            twin._lent = self._spare.lend(self._usage)
            twin._usage, usage = twin._lent.array, self._usage[:, rows]
            twin._usage[:, rows] = usage if amounts is None else usage + amounts
        twin._shown_usage = read_only(twin._usage)
        return twin

    def usage_of(self, pod_usages: Sequence[PodUsage]) -> IntArray:
        """Return what each `PodUsage` adds to a node's usage. Shape: one row for each usage column.

        Cost: equal usages are mostly one object, and each object is converted once, unless they are few.
        """
        if len(pod_usages) <= _FEW_USAGES:
            columns = [*map(self._usage_column, pod_usages)]
            return np.array(columns, np.int64).reshape(len(columns), len(self._usage)).T
        identities = np.fromiter(map(id, pod_usages), np.int64, len(pod_usages))
        _, first, positions = np.unique(identities, return_index=True, return_inverse=True)
        columns = [self._usage_column(pod_usages[index]) for index in first.tolist()]
        return np.array(columns, np.int64).reshape(len(columns), len(self._usage)).T[:, positions]

    def add_usage(self, rows: Rows, amounts: IntArray) -> None:
        """Add to the usage of these rows without adding a pod. Rows may repeat.

        Args: `amounts` have the shape that `usage_of` returns.
        """
        assert self._is_fork, "only in a fork may the usage differ from the pods"
        for column, amount in zip(self._usage, amounts, strict=True):
            np.add.at(column, rows, amount)

    # ------------------------------------------------------------ inside

    def _own_nodes(self) -> None:
        """Copy shared node columns. Must be called before a node changes."""
        if not self._shares_nodes:
            return
        assert not self._shares_pods, "only the usage of this fork may change"
        self._shares_nodes = False
        self.row_of, self.nodes = dict(self.row_of), list(self.nodes)
        self.images = self.images.copy()
        self.node_changes = self.node_changes.branch()
        self.taint_sets, self._taint_set_id = list(self.taint_sets), dict(self._taint_set_id)
        self._unschedulable, self._taint_set_ids = self._unschedulable.copy(), self._taint_set_ids.copy()
        self._allowed_pods, self._allocatable = self._allowed_pods.copy(), self._allocatable.copy()
        self._labels = self._labels.copy()
        self._tree, self._free_rows = self._tree.copy(), list(self._free_rows)
        self._show()

    def _show(self) -> None:
        """Make the read-only views that plugins get, so that a `-=` meant for a copy cannot write to the columns."""
        self.unschedulable, self.taint_set = read_only(self._unschedulable), read_only(self._taint_set_ids)
        self._shown_allowed_pods = read_only(self._allowed_pods)
        self._shown_allocatable = read_only(self._allocatable)
        self._shown_usage = read_only(self._usage)

    def _usage_row(self, index: int) -> IntArray:
        row: IntArray = self._shown_usage[index]
        return row

    def _count(self, row: int, pod_usage: PodUsage, sign: int) -> None:
        usage = self._usage
        self.usage_changes.append(row)
        usage[_POD_COUNT, row] += sign
        usage[_NONZERO_CPU, row] += sign * pod_usage.nonzero_cpu_milli
        usage[_NONZERO_MEMORY, row] += sign * pod_usage.nonzero_memory_bytes
        for resource, amount in pod_usage.requests.items():
            index = self._resource_index.get(resource)
            if index is not None:
                usage[_FIRST_RESOURCE + index, row] += sign * amount

    def _usage_column(self, pod_usage: PodUsage) -> list[int]:
        """Return what a `PodUsage` adds to each usage column."""
        column = [0] * len(self._usage)
        column[_POD_COUNT] = 1
        column[_NONZERO_CPU] = pod_usage.nonzero_cpu_milli
        column[_NONZERO_MEMORY] = pod_usage.nonzero_memory_bytes
        for resource, amount in pod_usage.requests.items():
            index = self._resource_index.get(resource)
            if index is not None:
                column[_FIRST_RESOURCE + index] = amount
        return column

    def _put_into_indexes(self, row: int, pod: Pod) -> None:
        self.pod_counts.add(row, pod)
        if pod.spec.affinity is not None:
            self.existing_terms.add(row, pod)
        if pod.spec.volumes:
            self.volumes_in_use.add(row, pod)

    def _take_out_of_indexes(self, row: int, pod: Pod) -> None:
        self.pod_counts.remove(row, pod)
        if pod.spec.affinity is not None:
            self.existing_terms.remove(row, pod)
        if pod.spec.volumes:
            self.volumes_in_use.remove(row, pod)

    def _offer(self, resources: Iterable[str]) -> None:
        """Make columns for a node's resources. Pods get none, because invented names could fill the memory.

        Cost: for a resource that is new to the cluster, one pass over all pods.
        """
        new = [resource for resource in resources if resource not in self._resource_index]
        if not new:
            return
        index = self._resource_index
        self._resource_index = {**index, **{resource: position for position, resource in enumerate(new, len(index))}}
        usage = np.zeros((len(new), len(self.nodes)), np.int64)
        for row, pods in enumerate(self.pods):
            for pod in pods.values():
                requests = self._pod_usages.of(row, pod).requests
                for at, resource in enumerate(new):
                    usage[at, row] += requests.get(resource, 0)
        self._usage = np.concatenate((self._usage, usage))
        self._allocatable = np.concatenate((self._allocatable, np.zeros_like(usage)))
        self._show()

    def _taint_set(self, taints: tuple[Taint, ...]) -> int:
        set_id = self._taint_set_id.get(taints)
        if set_id is None:
            set_id = self._taint_set_id[taints] = len(self.taint_sets)
            self.taint_sets.append(taints)
        return set_id

    def _forget_taint_sets(self) -> None:
        """Renumber the taint sets in use in a new table. Lookups that cached answers for the old table start again."""
        # Number 0 is the empty set, whether or not there is a node without taints.
        in_use = sorted({0, *self._taint_set_ids.tolist()})
        taint_sets = [self.taint_sets[set_id] for set_id in in_use]
        self._taint_set_ids = np.searchsorted(in_use, self._taint_set_ids).astype(np.int32)
        self._show()
        self.taint_sets = taint_sets
        self._taint_set_id = {taints: number for number, taints in enumerate(taint_sets)}
        self._taint_sets_max = max(TAINT_SETS_KEPT, 2 * len(taint_sets))

    def _take_row(self) -> int:
        if not self._free_rows:
            self._grow()
        row = self._free_rows.pop()
        self.row_end = max(self.row_end, row + 1)
        return row

    def _grow(self) -> None:
        former_size = len(self.nodes)
        size = max(_ROWS_AT_FIRST, 2 * former_size)
        growth = size - former_size
        self.nodes.extend([None] * growth)
        self.pods.extend({} for _ in range(growth))
        self._unschedulable = np.concatenate((self._unschedulable, np.zeros(growth, np.bool_)))
        self._taint_set_ids = np.concatenate((self._taint_set_ids, np.zeros(growth, np.int32)))
        self._allowed_pods = np.concatenate((self._allowed_pods, np.zeros(growth, np.int64)))
        self._allocatable = widen(self._allocatable, growth)
        self._usage = widen(self._usage, growth)
        self._show()
        self._labels.resize(size)
        # Reversed, so that rows are taken from the lowest up, and the columns in use stay dense.
        self._free_rows.extend(range(size - 1, former_size - 1, -1))
