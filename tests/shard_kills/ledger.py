"""The changes of pods and Leases in the order in which etcd has them, and the rules that members of a group must keep.

Pure. Who bound a pod is told by the API server's audit log, by the account of each member.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from podium.shards import MemberLease
from podium.shards.announcement import GROUP_LABEL
from podium.shards.report import report_on
from tests import builders
from tests.simulation.random_objects import requests_of, room, total_amounts

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """An object as it was written at a revision of etcd; None if it was deleted."""

    revision: int
    key: str
    value: Json | None


@dataclass(frozen=True, slots=True)
class Binding:
    """The revision at which a pod got its node."""

    revision: int
    pod: str
    node: str


@dataclass(frozen=True, slots=True)
class BindingRequest:
    """The member that has bound a pod, and when the API server received its request, in seconds since the epoch."""

    member: str
    received_s: float


@dataclass(frozen=True, slots=True)
class LeaseVersion:
    """A Lease as it was written at a revision of etcd."""

    revision: int
    lease: MemberLease

    @property
    def expires_s(self) -> float:
        """The time from which the Lease is no longer valid, in seconds since the epoch."""
        return self.lease.renewed_at_s + self.lease.duration_s


class Ledger:
    """Takes in changes, and fails at the first one that breaks a rule.

    Args:
        nodes: manifests of all nodes, which stay as they are.
    """

    def __init__(self, group: str, nodes: Iterable[Json]) -> None:
        self.bindings: list[Binding] = []
        self.waiting: set[str] = set()
        """The pods without a node."""
        self._group = group
        self._capacities = {item["metadata"]["name"]: room(item["status"]) for item in nodes}
        self._nodes = {
            item["metadata"]["name"]: builders.node(item["metadata"]["name"], labels=item["metadata"]["labels"])
            for item in nodes
        }
        self._leases: dict[str, list[LeaseVersion]] = {}
        self._node_by_pod: dict[str, str] = {}
        self._pods_by_node: dict[str, dict[str, Json]] = {name: {} for name in self._capacities}

    def take(self, change: Change) -> None:
        """Take in a change. Raises: AssertionError if a pod has left its node, or a node has more than it offers."""
        *_, resource, _, name = change.key.split("/")
        if resource == "pods":
            self._take_pod(name, change)
        elif change.value is not None and change.value["metadata"].get("labels", {}).get(GROUP_LABEL) == self._group:
            lease = MemberLease.of(change.value)
            self._leases.setdefault(lease.member, []).append(LeaseVersion(change.revision, lease))

    def _take_pod(self, name: str, change: Change) -> None:
        former_node = self._node_by_pod.get(name, "")
        if change.value is None:
            self.waiting.discard(name)
            self._pods_by_node.get(former_node, {}).pop(name, None)
            return
        node = change.value["spec"].get("nodeName", "")
        if not node:
            self.waiting.add(name)
        assert former_node in ("", node), f"{name} went from {former_node} to {node or 'nowhere'}"
        if node and not former_node:
            self.waiting.discard(name)
            self._node_by_pod[name] = node
            self.bindings.append(Binding(change.revision, name, node))
            self._pods_by_node[node][name] = change.value
            self._check_room(node)

    def _check_room(self, node: str) -> None:
        amounts = total_amounts(map(requests_of, self._pods_by_node[node].values()))
        capacity = self._capacities[node]
        is_enough = all(need <= has for need, has in zip(amounts, capacity, strict=True))
        assert is_enough, f"{node} holds {amounts} and offers {capacity}"

    def bound_pods(self) -> list[str]:
        """Return the pods that have nodes now, those first that were bound first."""
        pods_with_nodes = {name for pods in self._pods_by_node.values() for name in pods}
        return [binding.pod for binding in self.bindings if binding.pod in pods_with_nodes]

    def holders(self, now_s: float) -> set[str]:
        """Return the processes that hold valid Leases."""
        versions = (versions[-1] for versions in self._leases.values())
        return {version.lease.holder for version in versions if now_s <= version.expires_s} - {""}

    def is_divided(self, now_s: float, dead_holder: str = "") -> bool:
        """Return True if each node has one member that may decide on it, and a dead process holds no Lease."""
        leases = [versions[-1].lease for versions in self._leases.values()]
        report = report_on(self._group, leases, self._nodes.values(), now_s)
        is_clear = not report.unowned and not any(member.contested for member in report.members)
        return is_clear and dead_holder not in self.holders(now_s)

    # ------------------------------------------------------------ after the run

    def check_acts(self, requests: Mapping[str, BindingRequest]) -> int:
        """Check that each binding was covered by a Lease, and that the one before on its node had ended.

        Args:
            requests: the request that has bound each pod; it may be missing if the API server was killed amid it.

        Returns the number of bindings without a request.
        Raises: AssertionError if a member has bound a pod without a claim, or two have acted on a node at a time.
        """
        acts = [(binding, requests[binding.pod]) for binding in self.bindings if binding.pod in requests]
        latest: dict[str, tuple[Binding, BindingRequest]] = {}
        for binding, request in acts:
            self._check_claim(binding, request)
            former = latest.get(binding.node)
            if former is not None and former[1].member != request.member:
                self._check_handed_over(former[1].member, former[0], binding, request)
            latest[binding.node] = binding, request
        return len(self.bindings) - len(acts)

    def _check_claim(self, binding: Binding, request: BindingRequest) -> None:
        *_, version = self._versions(request.member, binding.revision, binding.revision)
        text = f"{request.member} bound {binding.pod} to {binding.node} at {binding.revision}"
        assert self._claims(version, binding.node), f"{text}, and its Lease of {version.revision} does not claim it"
        late_s = request.received_s - version.expires_s
        assert late_s <= 0.0, f"{text}, {late_s:.1f} s after its Lease of {version.revision} had run out"

    def _check_handed_over(self, owner: str, old: Binding, new: Binding, request: BindingRequest) -> None:
        versions = list(self._versions(owner, old.revision, new.revision))
        has_let_go = (
            not all(self._claims(version, new.node) for version in versions)
            or request.received_s > versions[-1].expires_s
            or any(later.lease.renewed_at_s > earlier.expires_s for earlier, later in pairwise(versions))
        )
        assert has_let_go, (
            f"{owner} bound {old.pod} to {old.node} at {old.revision} and claimed that node "
            f"when {request.member} bound {new.pod} there at {new.revision}"
        )

    def _versions(self, member: str, first: int, last: int) -> Iterator[LeaseVersion]:
        """Yield what the member's Lease said from one revision to another."""
        versions = self._leases.get(member, [])
        position = bisect_right(versions, first, key=lambda version: version.revision) - 1
        assert position >= 0, f"{member} had no Lease at {first}"
        for version in versions[position:]:
            if version.revision > last:
                return
            yield version

    def _claims(self, version: LeaseVersion, node: str) -> bool:
        return bool(version.lease.holder) and version.lease.announcement.claims(self._nodes[node])
