"""The live cache: which pods count on which node, and the changes to apply to the snapshot.

Owns the states of a pod in the cache (assumed, added) and the pods of nodes that do not exist (yet, or any more).

Source: kubernetes pkg/scheduler/backend/cache/cache.go, v1.36.2.
Differs: a bound pod that reappears on another node is moved and logged, where upstream ends the process. An object that
cannot be parsed in full is reported once and counts as far as it can be parsed, and its node takes no new pods;
upstream counts what it can parse and keeps placing pods there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from podium.cluster.closed_nodes import NODE_ITSELF, ClosedNodes, closing_reason
from podium.cluster.pod_counts import CHANGES_KEPT
from podium.cluster.pod_groups import PodGroupStates
from podium.cluster.pod_states import PodEvent, PodState, next_state
from podium.cluster.pod_usage import PodUsage, pod_usage, pod_usage_without_requests, unread_part
from podium.cluster.snapshot import Snapshot
from podium.lib.log import get_logger
from podium.objects.core import Node, Pod
from podium.objects.errors import FieldError
from podium.objects.requests import node_allocatable
from podium.objects.unreadable import UnreadablePod, unread_field

log = get_logger("cache")

CHANGES_WAITING_MAX: Final = 1_000
"""How many changes may wait for the next snapshot: at most 25 ms of work. The limit matters for a standby and for a
cluster without pending pods, which never take a snapshot."""

ReportBroken: TypeAlias = Callable[[Node | Pod, FieldError], None]
"""Called for each object that cannot be parsed in full, once per object and fault."""


class NodeDump(NamedTuple):
    """The cache's view of one node, for the debug dump. Units: those of the quantities, cpu in milli."""

    is_deleted: bool
    requested: Mapping[str, int]
    allocatable: Mapping[str, int]
    pods: Sequence[Pod]


class Cache:
    """Pods by UID and nodes by name, from the informers and from the scheduler's own decisions.

    Args:
        pod_usage_of: the usage that a pod adds to its node; raises FieldError if it cannot be parsed.
        pod_groups: the pods of each group, which the cache keeps up to date except for pods that come and go while they
            wait; None if pods are not scheduled in groups.
        changes_kept: see `Snapshot`.

    Invariant: every pod that is assumed or added counts on exactly one node name, whether or not that node exists.
    """

    def __init__(
        self,
        report_broken: ReportBroken,
        pod_usage_of: Callable[[Pod], PodUsage] = pod_usage,
        pod_groups: PodGroupStates | None = None,
        changes_kept: int = CHANGES_KEPT,
    ) -> None:
        self.pod_groups = pod_groups
        self._report_broken = report_broken
        self._pod_usage_of = pod_usage_of
        self._reported: dict[str, str] = {}
        self._pods: dict[str, Pod] = {}
        self._on_node: dict[str, dict[str, Pod]] = {}
        self._copied: set[str] | None = None
        """The nodes whose pods were copied since the latest fork; None if there was no fork."""
        self._nodes: dict[str, Node] = {}
        self._assumed: set[str] = set()
        self._closed = ClosedNodes()
        self._opened: list[Node] = []
        self._snapshot = Snapshot(changes_kept)
        self._log: list[Callable[[Snapshot], None]] = []
        self._changes = 0
        self._is_held = False

    def fork(self) -> Cache:
        """Return a copy of this cache. Later changes of this one do not reach it.

        Invariant: nodes of this cache must not change while the fork's nodes are read, because both share their
        columns.
        Cost: a copy of every table, but for the pods of each node, which are copied when one of them changes;
        `python -m benchmarks forks` measures it.
        """
        twin = object.__new__(Cache)
        twin.__dict__.update(self.__dict__)
        twin._snapshot = self.snapshot().fork()
        twin._reported, twin._pods, twin._assumed = dict(self._reported), dict(self._pods), set(self._assumed)
        twin._on_node, twin._copied, self._copied = dict(self._on_node), set(), set()
        twin._nodes = dict(self._nodes)
        twin._closed, twin._opened, twin._log = self._closed.copy(), [], []
        twin.pod_groups = None if self.pod_groups is None else self.pod_groups.fork()
        return twin

    # ------------------------------------------------------------ nodes

    def put_node(self, node: Node) -> bool:
        """Add or update the node. Pods that were already known to be on it count from now on.

        Returns:
            Whether the node can be parsed. If its allocatable resources cannot be, it is closed to new pods.

        Cost: 1 us for a heartbeat, which changes nothing here.
        """
        known_node, name = self._nodes.get(node.name), node.name
        error = unread_field(node)
        if (
            known_node is not None
            and error is None
            and type(known_node) is type(node)
            and _is_same_node(known_node, node)
        ):
            return not self._closed.has(name, NODE_ITSELF)
        if error is not None and known_node is not None:
            # Keep the known labels, so that its pods stay in its zone even if the new labels cannot be parsed.
            labels = {**known_node.metadata.labels, **node.metadata.labels}
            node = replace(node, metadata=replace(node.metadata, labels=labels))
        allocatable, allowed_pods, unread = _offer_of(node)
        error = error if unread is None else unread
        if error is not None:
            self._report_once(name, node, error)
        self._nodes[name] = node
        self._change(lambda snapshot: snapshot.put_node(node, allocatable, allowed_pods))
        if known_node is None:
            for pod in self._on_node.get(name, {}).values():
                self._log_add(pod, self._usage(pod))
            if self._closed.why(name):
                self._log_closed(name)
        self._note_unread(name, NODE_ITSELF, "" if error is None else closing_reason("the node", error))
        return error is None

    def remove_node(self, name: str) -> None:
        """Remove the node. Its pods stay known until they are removed themselves."""
        self._reported.pop(name, None)
        if self._nodes.pop(name, None) is not None:
            self._change(lambda snapshot: snapshot.drop_node(name))
        self._note_unread(name, NODE_ITSELF, "")

    def take_opened(self) -> Sequence[Node]:
        """Return the nodes that were closed because of a pod and have been opened again since the last call."""
        if not self._opened:
            return ()
        opened, self._opened = self._opened, []
        return [node for node in opened if node.name in self._nodes and not self._closed.why(node.name)]

    # ------------------------------------------------------------ pods

    def assume_pod(self, pod: Pod, node_name: str) -> None:
        """Count the pod on the node before the watch confirms its binding.

        Raises:
            CacheError: the pod counts on a node already.
        """
        next_state(self.state_of(pod.uid), PodEvent.ASSUME, pod)
        assumed_pod = pod.on_node(node_name)
        self._insert(assumed_pod)
        self._assumed.add(pod.uid)
        if self.pod_groups is not None:
            self.pod_groups.assume(assumed_pod)

    def forget_pod(self, pod: Pod) -> bool:
        """Forget an assumed pod.

        Returns:
            Whether the pod was assumed until now.

        Raises:
            CacheError: the watch has confirmed the pod meanwhile.
        """
        next_state(self.state_of(pod.uid), PodEvent.FORGET, pod)
        if pod.uid not in self._assumed:
            return False
        self._delete(pod.uid)
        if self.pod_groups is not None:
            self.pod_groups.forget(pod)
        return True

    def add_pod(self, pod: Pod) -> None:
        """Count a bound pod; confirms it if it was assumed.

        Raises:
            CacheError: the pod was added before.
        """
        uid = pod.uid
        next_state(self.state_of(uid), PodEvent.ADD, pod)
        if self.pod_groups is not None:
            self.pod_groups.put_assigned(pod)
        cached_pod = self._pods.get(uid)
        if cached_pod is None:
            self._insert(pod)
            return
        self._assumed.discard(uid)
        self._replace(cached_pod, pod)

    def update_pod(self, pod: Pod) -> None:
        """Update a bound pod.

        Raises:
            CacheError: the pod is not added, or only assumed.
        """
        next_state(self.state_of(pod.uid), PodEvent.UPDATE, pod)
        if self.pod_groups is not None:
            self.pod_groups.put_assigned(pod)
        self._replace(self._pods[pod.uid], pod)

    def remove_pod(self, pod: Pod) -> None:
        """Stop counting a pod.

        Raises:
            CacheError: the pod is not known.
        """
        next_state(self.state_of(pod.uid), PodEvent.REMOVE, pod)
        self._delete(pod.uid)
        if self.pod_groups is not None:
            self.pod_groups.remove(pod)

    def put_pod(self, pod: Pod) -> None:
        """Add or update a bound pod."""
        if self.state_of(pod.uid) is PodState.ADDED:
            self.update_pod(pod)
        else:
            self.add_pod(pod)

    def drop_pod(self, pod: Pod) -> None:
        """Stop counting a bound pod, if it counts. An assumed pod is left to the binding cycle that assumed it."""
        if self.state_of(pod.uid) is PodState.ADDED:
            self.remove_pod(pod)

    def state_of(self, uid: str) -> PodState:
        """Return the pod's state in the cache."""
        if uid not in self._pods:
            return PodState.UNKNOWN
        return PodState.ASSUMED if uid in self._assumed else PodState.ADDED

    def assumed_pods(self) -> Iterator[Pod]:
        """Return the pods that are assumed, each with its node."""
        return (self._pods[uid] for uid in self._assumed)

    def is_assumed(self, uid: str) -> bool:
        """Return True if the pod is assumed: it counts on a node, but the watch has not yet confirmed its binding."""
        return uid in self._assumed

    def pod(self, uid: str) -> Pod | None:
        """Return the pod as the cache has it, with its node's name, or None if it does not count."""
        return self._pods.get(uid)

    def pods_on(self, node_name: str) -> Iterable[Pod]:
        """Return the pods that count on the node."""
        return list(self._on_node.get(node_name, {}).values())

    def dump_node(self, node_name: str) -> NodeDump:
        """Return the cache's view of the node, whether or not it exists. Cost: one step for each of its pods."""
        pods = list(self._on_node.get(node_name, {}).values())
        totals: Counter[str] = Counter()
        for pod in pods:
            totals.update(self._usage(pod).requests)
        node = self._nodes.get(node_name)
        return NodeDump(node is None, totals, {} if node is None else _offer_of(node)[0], pods)

    def is_overfull_for(self, pod: Pod, *, with_assumed: bool = False) -> bool:
        """Return True if the pod's node is overcommitted in a resource that the pod requests.

        Resources that the node does not offer are ignored: a device class provides those, through claims.

        Args:
            pod: assumed or added.
            with_assumed: assumed pods count too.

        Cost: one step for each pod of the node.
        """
        cached_pod = self._pods.get(pod.uid)
        node = self._nodes.get(cached_pod.node_name) if cached_pod is not None else None
        if cached_pod is None or node is None:
            return False
        on_node = self._on_node[cached_pod.node_name].items()
        occupants = [occupant for uid, occupant in on_node if with_assumed or uid not in self._assumed]
        allocatable, allowed_pods, _ = _offer_of(node)
        totals: Counter[str] = Counter()
        for occupant in occupants:
            totals.update(self._usage(occupant).requests)
        return len(occupants) > allowed_pods or any(
            amount and 0 < allocatable.get(name, 0) < totals[name]
            for name, amount in self._usage(cached_pod).requests.items()
        )

    # ------------------------------------------------------------ the whole

    def snapshot(self) -> Snapshot:
        """Return the snapshot with all changes applied. Always the same object, valid until the next call.

        Changes are also applied without a call once `CHANGES_WAITING_MAX` are waiting; across an await the snapshot
        stays unchanged only within `hold`.

        Cost: proportional to what changed since the last call.
        """
        if self._is_held:
            return self._snapshot
        for change in self._log:
            change(self._snapshot)
        self._log.clear()
        self._snapshot.settle()
        return self._snapshot

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep the snapshot unchanged until the block ends, for an attempt that awaits extenders.

        Changes wait in the log.
        """
        assert not self._is_held, "only one attempt may hold the snapshot"
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False

    @property
    def changes(self) -> int:
        """The number of changes to the cluster so far."""
        return self._changes

    def statistics(self) -> dict[str, int]:
        """Return the numbers of nodes, pods and assumed pods, by the labels of the `cache_size` metric."""
        return {"nodes": len(self._nodes), "pods": len(self._pods), "assumed_pods": len(self._assumed)}

    def node_names(self) -> Iterable[str]:
        """Return the nodes that exist."""
        return self._nodes.keys()

    def known_node_names(self) -> Sequence[str]:
        """Return the nodes that exist, and those that still have pods counted on them."""
        return [*self._nodes, *(name for name, pods in self._on_node.items() if pods and name not in self._nodes)]

    # ------------------------------------------------------------ inside

    def _read(self, pod: Pod) -> tuple[PodUsage, str]:
        """Return the pod's usage, and which part of the pod cannot be parsed."""
        try:
            pod_usage, affinity = self._pod_usage_of(pod), pod.spec.affinity
            # Checked here to save a call: most pods have no affinity.
            if (affinity is None or affinity.pod_anti_affinity is None) and pod.__class__ is not UnreadablePod:
                return pod_usage, ""
            unread = unread_part(pod)
        except FieldError as error:
            pod_usage, unread = pod_usage_without_requests(pod), error
        if unread is None:
            return pod_usage, ""
        self._report_once(pod.uid, pod, unread)
        return pod_usage, closing_reason("a pod there", unread)

    def _usage(self, pod: Pod) -> PodUsage:
        """Return the usage of a pod that counts. Cost: a look-up, unless the pod has been resized."""
        try:
            return self._pod_usage_of(pod)
        except FieldError:
            return pod_usage_without_requests(pod)

    def _note_unread(self, node_name: str, giver: str, reason: str) -> None:
        """Record this reason for closing the node, or drop the giver's reason if `why` is empty."""
        if not self._closed.note(node_name, giver, reason) or (node := self._nodes.get(node_name)) is None:
            return
        self._log_closed(node_name)
        if giver != NODE_ITSELF and not self._closed.why(node_name):
            self._opened.append(node)

    def _log_closed(self, node_name: str) -> None:
        reason = self._closed.why(node_name)
        self._change(lambda snapshot: snapshot.close_node(node_name, reason))

    def _report_once(self, identity: str, item: Node | Pod, error: FieldError) -> None:
        if self._reported.get(identity) != str(error):
            self._reported[identity] = str(error)
            self._report_broken(item, error)

    def _insert(self, pod: Pod) -> None:
        pod_usage, unread = self._read(pod)
        self._keep(pod)
        if pod.node_name in self._nodes:
            self._log_add(pod, pod_usage)
        if unread:
            self._note_unread(pod.node_name, pod.uid, unread)

    def _keep(self, pod: Pod) -> None:
        uid = pod.uid
        self._pods[uid] = pod
        self._pods_to_change(pod.node_name)[uid] = pod

    def _pods_to_change(self, node_name: str) -> dict[str, Pod]:
        """Return the pods on the node, copied first if a fork may share them."""
        pods = self._on_node.get(node_name)
        if pods is None:
            pods = self._on_node[node_name] = {}
        elif self._copied is not None and node_name not in self._copied:
            pods = self._on_node[node_name] = dict(pods)
        if self._copied is not None:
            self._copied.add(node_name)
        return pods

    def _delete(self, uid: str) -> None:
        name = self._pods.pop(uid).node_name
        self._assumed.discard(uid)
        self._reported.pop(uid, None)
        on_node = self._pods_to_change(name)
        del on_node[uid]
        if not on_node:
            del self._on_node[name]
        if name in self._nodes:
            self._change(lambda snapshot: _remove(snapshot, name, uid))
        if self._closed.has(name, uid):
            self._note_unread(name, uid, "")

    def _replace(self, cached_pod: Pod, pod: Pod) -> None:
        former_node_name = cached_pod.node_name
        if former_node_name != pod.node_name:
            log.warning("Pod has moved to another node", pod=pod.key, node=pod.node_name, before=former_node_name)
            self._delete(pod.uid)
            self._insert(pod)
            return
        pod_usage, unread = self._read(pod)
        self._keep(pod)
        if pod.node_name in self._nodes:
            self._change(lambda snapshot: snapshot.replace_pod(snapshot.row_of[pod.node_name], pod, pod_usage))
        if unread or self._closed.has(pod.node_name, pod.uid):
            self._note_unread(pod.node_name, pod.uid, unread)

    def _log_add(self, pod: Pod, pod_usage: PodUsage) -> None:
        self._change(lambda snapshot: snapshot.add_pod(snapshot.row_of[pod.node_name], pod, pod_usage))

    def _change(self, change: Callable[[Snapshot], None]) -> None:
        self._log.append(change)
        self._changes += 1
        if len(self._log) >= CHANGES_WAITING_MAX:
            self.snapshot()


def _is_same_node(known_node: Node, node: Node) -> bool:
    """Return True if the two states differ only in their resource versions, as after a heartbeat."""
    former, current = known_node.metadata, node.metadata
    return (
        known_node.status == node.status
        and known_node.spec == node.spec
        and former.labels == current.labels
        and former.annotations == current.annotations
        and former.uid == current.uid
        and former.deletion_timestamp == current.deletion_timestamp
        and former.owner_references == current.owner_references
    )


def _offer_of(node: Node) -> tuple[Mapping[str, int], int, FieldError | None]:
    """Return the allocatable amounts of the node and how many pods it allows: nothing, and why, if they are unread."""
    try:
        return *node_allocatable(node), None
    except FieldError as unread:
        return {}, 0, unread


def _remove(snapshot: Snapshot, node_name: str, uid: str) -> None:
    snapshot.remove_pod(snapshot.row_of[node_name], uid)
