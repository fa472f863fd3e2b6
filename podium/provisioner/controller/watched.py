"""The cluster as the provisioner watches it.

Owns which kinds are watched, and what an unreadable or unusable object means: it is reported once and left out.
Never lists or watches by itself: `client.informer_set` does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

import msgspec

from podium.client.informer import Informer
from podium.client.informer_set import InformerSet
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.core import Pod
from podium.objects.resource_types import NODES, PODS, ResourceType
from podium.objects.times import format_time, parse_time
from podium.objects.wire import BrokenObject
from podium.provisioner.apis.labels import INITIALIZED, PLANNED_PODS
from podium.provisioner.apis.objects import ClusterObjects, NodeClaim, NodePool, ProvidedNode, is_true
from podium.provisioner.disruption import sandbox_nodes
from podium.provisioner.state.manifests import NODE_CLAIMS, NODE_OVERLAYS, NODE_POOLS, RESOURCES, completed_pool
from podium.provisioner.state.reading import KINDS
from podium.provisioner.state.usable import undecoded_claim, undecoded_node, usable_form

log = get_logger("provisioner")

WATCHED: Final[Mapping[str, ResourceType[Any]]] = {
    resource.kind: dataclasses.replace(resource, type=KINDS[resource.kind][1]) for resource in RESOURCES
}
"""By kind, every resource that a plan depends on, with the fields that planning reads."""

LAUNCHED_S_MAX: Final = 300.0
"""How long the machine of a NodeClaim may take before its pods are planned again: Karpenter then deletes it."""

REGISTERED_S_MAX: Final = 900.0
"""How long the node of a NodeClaim may take to join before pods are planned without it: Karpenter then deletes it."""

OVERLAYS: Final[Mapping[str, ResourceType[Any]]] = {NODE_OVERLAYS.kind: NODE_OVERLAYS}
"""What is watched besides, where NodeOverlays count; a cluster need not serve it."""

PROVIDED_NODES: Final[ResourceType[ProvidedNode]] = WATCHED[NODES.kind]


class _Usable:
    """Implements `podium.client.informer.Handler`: notes the objects of one kind that planning cannot use in full.

    Attributes:
        parts: By key, what still counts of each such object; None if nothing does.
    """

    def __init__(self, kind: str) -> None:
        self.parts: dict[str, Any | None] = {}
        self.listeners: list[Callable[[], None]] = []
        self._faults: dict[str, str] = {}
        self._kind = kind

    def left_out(self) -> dict[str, str]:
        """Return the faults of the objects that do not count at all, by key."""
        return {key: self._faults[key] for key, part in self.parts.items() if part is None}

    def on_add(self, new: Any, /) -> None:
        """Check an added object."""
        self._check(new)
        self._tell()

    def on_update(self, old: Any, new: Any, /) -> None:
        """Check a changed object."""
        del old
        self._check(new)
        self._tell()

    def on_delete(self, old: Any, /) -> None:
        """Forget a deleted object."""
        self.parts.pop(old.key, None)
        self._faults.pop(old.key, None)
        self._tell()

    def on_broken(self, broken_object: BrokenObject, /) -> None:
        """Report an object that cannot be read."""
        log.error(
            "Object cannot be read", kind=broken_object.kind, object=broken_object.key, error=broken_object.detail
        )

    def _tell(self) -> None:
        for listener in self.listeners:
            listener()

    def _check(self, item: Any) -> None:
        part, fault = usable_form(item)
        if fault is None:
            self.parts.pop(item.key, None)
            self._faults.pop(item.key, None)
            return
        # A broken object is sent again with each of its changes; the log says it once.
        if self._faults.get(item.key) != str(fault):
            text = "Object cannot be used" if part is None else "Object cannot be used in full"
            log.error(text, kind=self._kind, object=item.key, error=str(fault))
        self._faults[item.key] = str(fault)
        self.parts[item.key] = part


class _Overdue:
    """Knows which NodeClaims have been in a state for too long, by the monotonic clock, and reports each once."""

    def __init__(self, clock: Clock, after_s: float, text: str) -> None:
        self._clock = clock
        self._after_s = after_s
        self._text = text
        self._since_s: dict[str, float] = {}
        self._reported: set[str] = set()

    def among(self, claims: Iterable[NodeClaim]) -> AbstractSet[str]:
        """Return the UIDs of those that are overdue, of all that are in the state now."""
        now_s, names = self._clock.monotonic(), {claim.metadata.uid: claim.metadata.name for claim in claims}
        self._since_s = {uid: self._since_s.get(uid, now_s) for uid in names}
        overdue = {uid for uid, since_s in self._since_s.items() if now_s - since_s >= self._after_s}
        for uid in sorted(overdue - self._reported):
            log.warning(self._text, node_claim=names[uid])
        self._reported = overdue
        return overdue


class _PodEvents:
    """Implements `podium.client.informer.Handler`: knows when pods last arrived on a node or left it."""

    def __init__(self, clock: Clock) -> None:
        self.listeners: list[Callable[[Pod], None]] = []
        # By the monotonic clock: a clock that is set must not make a node look as if it were, or were not, in use.
        self._last_s: dict[str, float] = {}
        self._seen_since_s: dict[str, float] = {}
        self._clock = clock

    def on_add(self, new: Pod, /) -> None:
        """Count a new pod."""
        self._tell(new, new.node_name)

    def on_update(self, old: Pod, new: Pod, /) -> None:
        """Update a pod: only its binding to a node and its end change what is counted there."""
        is_event = old.node_name != new.node_name or old.is_terminating != new.is_terminating
        self._tell(new, new.node_name if is_event else "")

    def on_delete(self, old: Pod, /) -> None:
        """Forget a deleted pod."""
        self._tell(old, old.node_name)

    def on_broken(self, broken_object: BrokenObject, /) -> None:
        """Do nothing: it was reported already."""

    def note_nodes(self, names: Iterable[str]) -> None:
        """Note the nodes that there are, and forget all others."""
        now_s = self._clock.monotonic()
        self._seen_since_s = {name: self._seen_since_s.get(name, now_s) for name in names}
        self._last_s = {name: last_s for name, last_s in self._last_s.items() if name in self._seen_since_s}

    def last_event_s(self, node: ProvidedNode) -> float | None:
        """Return when a pod last arrived on the node or left it, in seconds since the epoch as the clock is set now.

        None means not since the node was created.
        """
        ahead_s = self._clock.now() - self._clock.monotonic()
        if node.name in self._last_s:
            return self._last_s[node.name] + ahead_s
        seen_since_s = self._seen_since_s[node.name] + ahead_s
        creation_time = node.metadata.creation_timestamp
        # Seen before it was created: the clock was set back, or is behind the API server's.
        return seen_since_s if creation_time and parse_time(creation_time) > seen_since_s else None

    def _tell(self, pod: Pod, node: str) -> None:
        if node:
            self._last_s[node] = self._clock.monotonic()
        # Also for pods without a node: the provisioning loop waits for those.
        for listener in self.listeners:
            listener(pod)


class WatchedCluster:
    """The objects that plans are made from.

    Args:
        informers: get the handlers; they must not have started.
        node_pools: those to buy from, instead of the cluster's.
        other_resources: more kinds that the plans depend on.
        removes_own_only: whether only nodes of the sandbox provider can be removed here. The others then belong to no
            NodeClaim: they take pods, and no plan removes them.
        has_overlays: whether NodeOverlays are watched, too.
    """

    def __init__(
        self,
        informers: InformerSet,
        clock: Clock,
        node_pools: Sequence[NodePool] | None = None,
        other_resources: Sequence[ResourceType[Any]] = (),
        *,
        removes_own_only: bool = False,
        has_overlays: bool = False,
    ) -> None:
        self._removes_own_only = removes_own_only
        self._informers = informers
        self._node_pools = node_pools
        self._by_kind: dict[str, Informer[Any]] = {}
        self._usable: dict[str, _Usable] = {}
        self._clock = clock
        self._unlaunched = _Overdue(clock, LAUNCHED_S_MAX, "NodeClaim has no machine, its pods are planned again")
        self._unjoined = _Overdue(clock, REGISTERED_S_MAX, "NodeClaim has no node, pods are planned without it")
        self._pod_events = _PodEvents(clock)
        for kind, resource in {**WATCHED, **(OVERLAYS if has_overlays else {})}.items():
            informer = self._by_kind[kind] = informers.informer(resource)
            handler = self._usable[kind] = _Usable(kind)
            informer.add_handler(handler)
        self._by_kind[PODS.kind].add_handler(self._pod_events)
        self._others = [(resource, informers.informer(resource)) for resource in other_resources]

    def on_pod(self, listener: Callable[[Pod], None]) -> None:
        """Call this with each pod that is added, changed or deleted."""
        self._pod_events.listeners.append(listener)

    def on_change(self, kind: str, listener: Callable[[], None]) -> None:
        """Call this after each change of an object of this kind."""
        self._usable[kind].listeners.append(listener)

    @property
    def is_current(self) -> bool:
        """Return True if no list is being taken in: until it is, pods or nodes may be missing."""
        # While a list is taken in, nodes that exist may be missing, and would be bought a second time.
        return self._informers.is_synced and self._informers.consistency.is_consistent

    def nodes(self) -> Iterable[ProvidedNode]:
        """Return all nodes."""
        return self._by_kind[NODES.kind].list()

    def node(self, name: str) -> ProvidedNode | None:
        """Return the node of that name."""
        return self._by_kind[NODES.kind].get(name)

    def pods(self) -> Iterable[Pod]:
        """Return all pods that have not ended."""
        return self._by_kind[PODS.kind].list()

    def objects(self) -> ClusterObjects:
        """Return the objects as they are now, as values that a plan may be made from in another thread."""
        # Nodes come and go under ever new names, so the times would pile up.
        self._pod_events.note_nodes([node.name for node in self.nodes()])
        lists = {KINDS[kind][0]: self._objects_of(kind) for kind in self._by_kind}
        lists["nodes"] = (*lists["nodes"], *self._undecoded_nodes(lists["node_claims"]))
        coming = self._coming_pods()
        claims_that_count = self._claims_that_count(lists["nodes"], lists["node_claims"])
        lists["node_claims"] = tuple(self._without_overdue(lists["nodes"], tuple(claims_that_count)))
        pools = lists["node_pools"] if self._node_pools is None else self._node_pools
        contents: dict[str, Any] = {
            **lists,
            "pods": tuple(pod for pod in lists["pods"] if pod.uid not in coming),
            "others": tuple((kind, item) for kind, informer in self._others for item in informer.list()),
            "node_pools": tuple(map(completed_pool, pools)),
            "closed_pools": self._usable[NODE_POOLS.kind].left_out() if self._node_pools is None else {},
            "node_claims": (
                *map(self._with_pod_event, lists["node_claims"]),
                *map(undecoded_claim, self._undecoded_objects(NODE_CLAIMS.kind)),
                *self._stand_in_claims(lists["nodes"], lists["node_claims"]),
            ),
        }
        return ClusterObjects(**contents)

    def node_claims(self) -> Iterable[NodeClaim]:
        """Return all NodeClaims."""
        return self._by_kind[NODE_CLAIMS.kind].list()

    def unseen(self, names: AbstractSet[str]) -> set[str]:
        """Return those of the names under which neither a node nor a NodeClaim is known."""
        claims = self._by_kind[NODE_CLAIMS.kind]
        return {name for name in names if self.node(name) is None and claims.get(name) is None}

    def undecoded_names(self) -> AbstractSet[str]:
        """Return the names of the nodes and NodeClaims that are there and cannot be decoded."""
        return {item.name for kind in (NODES.kind, NODE_CLAIMS.kind) for item in self._undecoded_objects(kind)}

    def is_ready(self, name: str) -> bool:
        """Return True if there is a node or a NodeClaim of this name that takes pods."""
        node, claim = self.node(name), self._by_kind[NODE_CLAIMS.kind].get(name)
        # A NodeClaim has its machine long before pods can run there.
        if node is not None and node.metadata.labels.get(INITIALIZED) == "true":
            return True
        return claim is not None and is_true(claim.status.conditions, "Initialized")

    def _coming_pods(self) -> AbstractSet[str]:
        """Return the UIDs of the pods whose node was bought and has no machine yet.

        They are not planned again; everybody else is. A machine that does not come is not waited for without end, and
        a NodeClaim that was not made here is not waited for at all.
        """
        launching = [
            claim
            for claim in self.node_claims()
            if not claim.status.provider_id
            and claim.metadata.deletion_timestamp is None
            and PLANNED_PODS in claim.metadata.annotations
        ]
        overdue = self._unlaunched.among(launching)
        return {
            uid
            for claim in launching
            if claim.metadata.uid not in overdue
            for uid in claim.metadata.annotations[PLANNED_PODS].split(",")
        }

    def _without_overdue(self, nodes: Iterable[ProvidedNode], claims: Sequence[NodeClaim]) -> Iterable[NodeClaim]:
        """Yield the NodeClaims. One whose node has not joined in time counts as one without a machine."""
        machine_ids = {node.spec.provider_id for node in nodes}
        overdue = self._unjoined.among(
            claim
            for claim in claims
            if claim.status.provider_id and claim.status.provider_id not in machine_ids
            if claim.metadata.deletion_timestamp is None
        )
        for claim in claims:
            if claim.metadata.uid in overdue:
                claim = msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, provider_id=""))
            yield claim

    def _undecoded_nodes(self, claims: Sequence[NodeClaim]) -> Iterable[ProvidedNode]:
        """Yield what counts of nodes that cannot be decoded; without it their NodeClaims would wait for them."""
        return (undecoded_node(broken_node, claims) for broken_node in self._undecoded_objects(NODES.kind))

    def _undecoded_objects(self, kind: str) -> Iterable[BrokenObject]:
        """Return the objects of a kind of which no state can be decoded."""
        informer = self._by_kind[kind]
        return sorted(
            (item for item in informer.broken_objects() if item.name and informer.get(item.key) is None),
            key=lambda item: item.key,
        )

    def _objects_of(self, kind: str) -> tuple[Any, ...]:
        parts = self._usable[kind].parts
        items = [parts.get(item.key, item) for item in self._by_kind[kind].list()]
        usable_items = [item for item in items if item is not None]
        return tuple(sorted(usable_items, key=lambda item: (item.metadata.namespace, item.metadata.name)))

    def _claims_that_count(self, nodes: Iterable[ProvidedNode], claims: Iterable[NodeClaim]) -> Iterable[NodeClaim]:
        if not self._removes_own_only:
            return claims
        # A removal that nobody carries out would leave the node cordoned for good.
        machine_ids = {node.spec.provider_id for node in nodes if sandbox_nodes.is_bought_here(node)}
        return (claim for claim in claims if claim.status.provider_id in machine_ids)

    def _with_pod_event(self, claim: NodeClaim) -> NodeClaim:
        """Return the NodeClaim with the time of the last pod that came or went, where no Karpenter writes it."""
        node = self.node(claim.status.node_name) if claim.status.node_name else None
        if claim.status.last_pod_event_time or node is None:
            return claim
        # Else the time would count from the start of the node, and busy nodes would count as quiet.
        last_s = self._pod_events.last_event_s(node)
        if last_s is None:
            return claim
        status = msgspec.structs.replace(claim.status, last_pod_event_time=format_time(last_s))
        return msgspec.structs.replace(claim, status=status)

    def _stand_in_claims(self, nodes: Iterable[ProvidedNode], claims: Iterable[NodeClaim]) -> Iterable[NodeClaim]:
        """Yield NodeClaims for the nodes of the sandbox provider."""
        machine_ids = {claim.status.provider_id for claim in claims}
        for node in nodes:
            # A Karpenter may have adopted the machine, and its own NodeClaim knows more.
            if sandbox_nodes.is_bought_here(node) and node.spec.provider_id not in machine_ids:
                yield sandbox_nodes.claim_of(node, self._pod_events.last_event_s(node))
