"""The nodes that a cluster has, or will have once they are up: each a Node joined with its NodeClaim.

Owns the join, and what of each side counts. Pure and immutable.

Source: karpenter pkg/controllers/state/statenode.go and cluster.go, v1.15.0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from podium.objects.core import Pod, Taint
from podium.objects.meta import ResourceList
from podium.objects.requests import Requests, whole_amounts
from podium.provisioner.apis.labels import HOSTNAME, INITIALIZED, INSTANCE_TYPE, NODE_POOL, REGISTERED
from podium.provisioner.apis.objects import ClusterObjects, NodeClaim, ProvidedNode, is_true
from podium.provisioner.scheduling.amounts import less, requests_of, total
from podium.provisioner.scheduling.taints import is_ephemeral
from podium.provisioner.state.usable import has_unknown_room
from podium.provisioner.state.validation import is_owned_by_daemon_set

_NAMES_MAX: Final = 3

NODES: Final = "nodes"
"""The resource by which limits count nodes."""


@dataclass(frozen=True, eq=False)
class StateNode:
    """A node that is there, or on its way.

    Attributes:
        node: The Node; None until there is one.
        claim: The NodeClaim; None if Karpenter does not manage the node.
        pods: The pods on it that have not ended.
    """

    node: ProvidedNode | None
    claim: NodeClaim | None
    pods: tuple[Pod, ...] = ()

    @cached_property
    def is_registered(self) -> bool:
        """Return True if the Node speaks for itself; before that its NodeClaim does."""
        return self._has_joined(REGISTERED)

    @cached_property
    def is_initialized(self) -> bool:
        """Return True if the node is ready for pods."""
        return self._has_joined(INITIALIZED)

    @cached_property
    def name(self) -> str:
        """The Node's name once it is registered; before that, the NodeClaim's."""
        return self._speaker.metadata.name

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """The labels."""
        return self._speaker.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations."""
        return self._speaker.metadata.annotations

    @cached_property
    def hostname(self) -> str:
        """The hostname label, or else the name."""
        return self.labels.get(HOSTNAME) or self.name

    @cached_property
    def is_leaving(self) -> bool:
        """Return True if the node is being deleted: then it takes no pods, and those on it are placed elsewhere."""
        if self.claim is not None:
            terminating = is_true(self.claim.status.conditions, "InstanceTerminating")
            # The NodeClaim speaks first: Karpenter taints and drains the node only after its NodeClaim is deleted.
            return self.claim.metadata.deletion_timestamp is not None or terminating
        assert self.node is not None
        return self.node.metadata.deletion_timestamp is not None

    @cached_property
    def is_rebooting(self) -> bool:
        """Return True if a reboot that repairs the node is under way."""
        return self.claim is not None and is_true(self.claim.status.conditions, "Rebooting")

    @cached_property
    def taints(self) -> tuple[Taint, ...]:
        """The taints that will remain once the node is ready."""
        if self.claim is None:
            assert self.node is not None
            return self.node.spec.taints
        is_own = self.node is not None and self.is_registered
        taints = self.node.spec.taints if self.node is not None and is_own else self.claim.spec.taints
        if self.is_initialized and not self.is_rebooting:
            return taints
        startup = {(taint.key, taint.effect) for taint in self.claim.spec.startup_taints}
        # They are taken away once the node is ready, so that pods can be planned for it now.
        return tuple(taint for taint in taints if not is_ephemeral(taint) and (taint.key, taint.effect) not in startup)

    @cached_property
    def capacity(self) -> Requests:
        """The capacity, and that it is one node."""
        node = self.node.status.capacity if self.node is not None else {}
        claim = self.claim.status.capacity if self.claim is not None else {}
        return {**self._amounts(node, claim, "status.capacity"), NODES: 1}

    @cached_property
    def allocatable(self) -> Requests:
        """The resources that pods can use."""
        node = self.node.status.allocatable if self.node is not None else {}
        claim = self.claim.status.allocatable if self.claim is not None else {}
        return self._amounts(node, claim, "status.allocatable")

    @cached_property
    def available(self) -> Requests:
        """The resources that pods can still use; none where an object cannot be read that says so."""
        if has_unknown_room(self.node, self.pods):
            return {}
        return less(self.allocatable, self.requests)

    @cached_property
    def requests(self) -> Requests:
        """The requests of the pods on it."""
        return total(*(requests_of(pod) for pod in self.pods))

    @cached_property
    def daemon_requests(self) -> Requests:
        """The requests of the pods of DaemonSets on it."""
        return total(*(requests_of(pod) for pod in self.pods if is_owned_by_daemon_set(pod)))

    @property
    def _speaker(self) -> ProvidedNode | NodeClaim:
        if self.node is None or (self.claim is not None and not self.is_registered):
            assert self.claim is not None
            return self.claim
        return self.node

    def _has_joined(self, label: str) -> bool:
        # Without a NodeClaim nothing would ever set the labels: a foreign node counts as ready.
        if self.claim is None:
            return True
        return self.node is not None and self.node.metadata.labels.get(label) == "true"

    def _amounts(self, node: ResourceList, claim: ResourceList, path: str) -> Requests:
        """Return the node's amounts; until it is initialised, the NodeClaim's where the node has none or 0."""
        amounts = dict(whole_amounts(node, path))
        if not self.is_initialized:
            for name, amount in whole_amounts(claim, path).items():
                # Device plugins report later than the kubelet: until then a node says 0 where the NodeClaim knows
                # better.
                amounts[name] = amounts.get(name) or amount
        return amounts


def state_nodes(objects: ClusterObjects) -> tuple[StateNode, ...]:
    """Return the nodes of a cluster, in order of name.

    A NodeClaim without a machine is not there yet, and neither is a managed Node without a machine's name, or without
    an instance type before it is initialised.
    """
    pods: dict[str, list[Pod]] = defaultdict(list)
    for pod in objects.pods:
        if pod.node_name and not pod.has_ended:
            pods[pod.node_name].append(pod)
    claims = {claim.status.provider_id: claim for claim in objects.node_claims if claim.status.provider_id}
    nodes = {node.spec.provider_id or node.metadata.name: node for node in objects.nodes if _is_known(node)}
    states = (
        StateNode(node, claims.get(machine), tuple(pods[node.metadata.name]) if node is not None else ())
        for machine in {**nodes, **claims}
        for node in (nodes.get(machine),)
    )
    return tuple(sorted(states, key=lambda state: state.name))


def notes_on_uncounted(objects: ClusterObjects) -> Iterator[str]:
    """Yield a sentence about the NodeClaims, and one about the nodes, that Karpenter does not count yet."""
    claims = [
        claim.metadata.name
        for claim in objects.node_claims
        if not claim.status.provider_id and claim.metadata.deletion_timestamp is None
    ]
    if claims:
        yield (
            f"{_names_text('NodeClaim', claims)} without a providerID: Karpenter waits until the machine is there, and "
            f"counts nothing of it before"
        )
    nodes = [node.metadata.name for node in objects.nodes if not _is_known(node)]
    if nodes:
        yield (
            f"{_names_text('Node', nodes)} of a NodePool without a providerID, or without an instance type before it "
            f"is initialized: Karpenter does not count it"
        )


def _names_text(kind: str, names: Sequence[str]) -> str:
    hidden_count = len(names) - _NAMES_MAX
    ending = f" and {hidden_count} more" if hidden_count > 0 else ""
    return f"{kind} {', '.join(sorted(names)[:_NAMES_MAX])}{ending}"


def leaving(nodes: Iterable[StateNode]) -> tuple[StateNode, ...]:
    """Return the nodes that are being deleted."""
    return tuple(node for node in nodes if node.is_leaving)


def _is_known(node: ProvidedNode) -> bool:
    labels = node.metadata.labels
    if not labels.get(NODE_POOL):
        return True
    # Karpenter's state ignores its own nodes until it can price them.
    return bool(node.spec.provider_id) and bool(labels.get(INSTANCE_TYPE) or labels.get(INITIALIZED))
