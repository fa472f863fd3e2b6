"""Looks for the nodes to buy so that a gang starts: all of its members get a node, or nothing is bought.

Owns in which topology domain they are bought, and how many of each kind. podium places the members on them.

In each domain the members that have no node get, again and again, the node with the lowest price for each member that
it takes, until all have one or the limits of the NodePools allow no more. The domain that takes most members is chosen,
and of several the cheapest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from podium.engine.cluster import Cluster
from podium.engine.gangs import Gang, restrict
from podium.engine.placement import Placement
from podium.objects.amounts import amount_texts
from podium.objects.core import Pod
from podium.objects.requests import Requests
from podium.objects.resource_types import NODES
from podium.provisioner.apis.labels import HOSTNAME
from podium.provisioner.planners.gang_placement import place_members, place_without_preemption, running_members
from podium.provisioner.planners.new_nodes import NewNodes
from podium.provisioner.planners.node_options import NodeOptions
from podium.provisioner.provisioning.candidate_nodes import CandidateNode
from podium.provisioner.state.costs import sum_in_order

NODES_MAX: Final = 1000
"""How many nodes are bought for one gang."""

_Attempt: TypeAlias = tuple[Mapping[str, CandidateNode], int, Placement | None]
"""The nodes, how many of the pods are placed with them, and the first attempt that failed."""


@dataclass(frozen=True)
class GangPurchase:
    """The nodes that are bought for a gang in one domain.

    Attributes:
        nodes: By name.
        count: How many members have a node with them, those that run too.
        is_enough: Whether these are as many as the gang needs.
        failure: The attempt at the first member that has none.
    """

    nodes: Mapping[str, CandidateNode]
    count: int
    is_enough: bool
    failure: Placement | None

    @property
    def price(self) -> float:
        """The price of all of them."""
        return sum_in_order(node.price for node in self.nodes.values())


@dataclass(frozen=True, slots=True)
class GangBuyer:
    """Buys nodes for gangs."""

    options: NodeOptions
    new_nodes: NewNodes

    def purchase_for(
        self, world: Cluster, gang: Gang, pods: Sequence[Pod], candidates: Mapping[str, CandidateNode]
    ) -> GangPurchase:
        """Return the nodes with which most of these members have a node; of several such purchases, the cheapest.

        Args:
            world: with the nodes that are bought already. It is not changed.
            candidates: these nodes, which count towards the limits of their NodePools.
        """
        # Members that run count, and tie the others to their domain.
        running = running_members(world, gang, pods)
        needed_count = gang.min_count - len(running)
        attempts: Iterable[_Attempt]
        if gang.topology_key == HOSTNAME:
            attempts = self._on_one_node(world, pods, candidates, needed_count, is_tied=bool(running))
        else:
            selectors = self._selectors(world, gang, running)
            attempts = (self._in_domain(world, pods, candidates, selector) for selector in selectors)
        purchases = [
            GangPurchase(nodes, len(running) + count, count >= needed_count, failure)
            for nodes, count, failure in attempts
        ]
        return min(purchases, key=lambda purchase: (-purchase.count, purchase.price))

    def lack(self, world: Cluster, gang: Gang, pods: Sequence[Pod], candidates: Mapping[str, CandidateNode]) -> str:
        """Return the sentence about what keeps a gang from starting: within the limits of the NodePools, or beyond."""
        within = self.purchase_for(world, gang, pods, candidates)
        text = f"{within.count} of {gang.min_count} members fit"
        if within.is_enough:
            return f"{text}, and then others would have no node"
        beyond = GangBuyer(self.options.without_limits(), self.new_nodes).purchase_for(world, gang, pods, candidates)
        if beyond.is_enough:
            return f"{text}; {self._excess_text(within, beyond, candidates)}"
        reason = "" if beyond.failure is None else beyond.failure.message
        return f"{beyond.count} of {gang.min_count} members fit" + (reason and f"; {reason}")

    def _excess_text(self, within: GangPurchase, beyond: GangPurchase, candidates: Mapping[str, CandidateNode]) -> str:
        """Return the nodes that are needed beyond limits, with these limits."""
        bought = {**candidates, **within.nodes}
        counts = Counter(node.instance_type.name for node in beyond.nodes.values())
        counts.subtract(node.instance_type.name for node in within.nodes.values())
        texts: list[str] = []
        for node in {node.instance_type.name: node for node in beyond.nodes.values()}.values():
            count, pool = counts[node.instance_type.name], node.template.name
            if count > 0:
                amounts = amount_texts(self.options.exceeded_limits(node, bought))
                limits = " and ".join(f"{amount} {name}" for name, amount in amounts.items())
                over = f", over the limit of {limits} of NodePool {pool}" if limits else f" of NodePool {pool}"
                texts.append(f"{count} more {node.instance_type.name}{over}")
        return "; ".join(texts) or "the nodes for the others are over the limits of the NodePools"

    # ------------------------------------------------------------ one domain

    def _selectors(self, world: Cluster, gang: Gang, running: Sequence[Pod]) -> Sequence[Mapping[str, str]]:
        key = gang.topology_key
        if key is None:
            return [{}]
        nodes = world.store.objects(NODES)
        running_nodes = [nodes[pod.node_name] for pod in running if pod.node_name in nodes]
        values = {node.metadata.labels[key] for node in running_nodes or nodes.values() if key in node.metadata.labels}
        if not running_nodes:
            values |= set(self.options.domains(key))
        return [{key: value} for value in sorted(values) or [""]]

    def _in_domain(
        self,
        world: Cluster,
        pods: Sequence[Pod],
        candidates: Mapping[str, CandidateNode],
        selector: Mapping[str, str],
    ) -> _Attempt:
        what_if, nodes = world.fork(), dict[str, CandidateNode]()
        members = [restrict(pod, selector) for pod in pods]
        names: set[str] = set()
        failure: Placement | None = None
        while members and len(nodes) < NODES_MAX:
            placements = place_members(what_if, members, {})
            names |= {placement.node for placement in placements if placement.node is not None}
            failures = [placement for placement in placements if placement.node is None]
            if nodes and len(failures) == len(members):
                # What was bought last helps nobody, although it did in a try.
                break
            members, failure = [placement.pod for placement in failures], next(iter(failures), None)
            cheapest = self._cheapest_per_pod(what_if, members, {**candidates, **nodes}) if members else None
            if cheapest is None:
                break
            node, count = cheapest
            for _ in range(max(len(members) // count, 1)):
                if self.options.exceeded_limits(node, {**candidates, **nodes}):
                    break
                name = self.new_nodes.name(node.template.name)
                nodes[name] = node
                self.new_nodes.add(what_if, name, node)
        return {name: node for name, node in nodes.items() if name in names}, len(pods) - len(members), failure

    def _cheapest_per_pod(
        self, world: Cluster, pods: Sequence[Pod], candidates: Mapping[str, CandidateNode]
    ) -> tuple[CandidateNode, int] | None:
        """Return the node with the lowest price for each of these pods that it takes, and their number."""
        requests = self.options.plain_requests(pods[0])
        options = [
            (option.price / max(min(_count_max(option, requests), len(pods)), 1), index, option)
            for index, option in enumerate(self.options.of_all_pools(pods[0], candidates))
        ]
        best: tuple[float, CandidateNode, int] | None = None
        # By a bound that no attempt is needed for, so that the first options settle the matter.
        for price_min, _, option in sorted(options, key=lambda entry: entry[:2]):
            if best is not None and price_min >= best[0]:
                break
            what_if, name = world.fork(), self.new_nodes.name(option.template.name)
            self.new_nodes.add(what_if, name, option)
            count = sum(1 for _ in _placed_on(what_if, pods, name))
            if count and (best is None or option.price / count < best[0]):
                best = option.price / count, option, count
        return None if best is None else best[1:]

    def _on_one_node(
        self,
        world: Cluster,
        pods: Sequence[Pod],
        candidates: Mapping[str, CandidateNode],
        needed_count: int,
        *,
        is_tied: bool,
    ) -> Iterator[_Attempt]:
        """Yield the purchase of no node, and of the cheapest one that takes all that the gang needs by itself.

        Args:
            needed_count: 0 or less for a group that needs none of these: then every node that takes any is yielded.
            is_tied: whether members run already, so that no other node will do.
        """
        yield {}, 0, place_members(world.fork(), pods[:1], {HOSTNAME: ""})[0]
        if is_tied:
            return
        requests = self.options.plain_requests(pods[0])
        for option in sorted(self.options.of_all_pools(pods[0], candidates), key=lambda option: option.price):
            if _count_max(option, requests) < max(needed_count, 1):
                continue
            what_if, name = world.fork(), self.new_nodes.name(option.template.name)
            self.new_nodes.add(what_if, name, option)
            placements = place_members(what_if, pods, {HOSTNAME: name})
            failures = [placement for placement in placements if placement.node is None]
            if len(pods) - len(failures) >= max(needed_count, 1):
                yield {name: option}, len(pods) - len(failures), next(iter(failures), None)
                if needed_count > 0 or not failures:
                    return


def _placed_on(world: Cluster, pods: Iterable[Pod], name: str) -> Iterator[Pod]:
    """Place the pods, and yield those that go to the node, up to the first that does not."""
    for pod in pods:
        if place_without_preemption(world, pod).node != name:
            return
        yield pod


def _count_max(option: CandidateNode, requests: Requests) -> int:
    """Return how many pods with these requests the node has room for."""
    room, overhead = option.allocatable, option.group.overhead
    return min((room.get(name, 0) - overhead.get(name, 0)) // amount for name, amount in requests.items() if amount)
