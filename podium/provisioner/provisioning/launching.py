"""Nodes to buy as a provider is asked for them: each under a name that follows from its pods.

Owns the names. A plan that is made again, by the same process or by the next one, has the same names, so a provider
never buys a node twice.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from podium.provisioner.apis.labels import NODE_POOL
from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.cloudprovider.instance_types import Offering
from podium.provisioner.provisioning.candidate_nodes import candidate_of
from podium.provisioner.provisioning.plan import NodePlan
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.state.state_node import NODES

_POOL_LENGTH_MAX: Final = 40
_DIGEST_LENGTH: Final = 10


def plan_id(now_s: float, names: Iterable[str]) -> str:
    """Return the name of a plan, by which log, Events and the ConfigMap can be joined.

    Args:
        now_s: when it was made, in seconds since the epoch.
        names: of the nodes and pods that it is about.
    """
    return _digest(str(now_s), *sorted(names))


def with_candidates(basis: PlanBasis, nodes: Iterable[NodePlan]) -> Iterator[NodePlan]:
    """Yield the nodes that can be bought, each with the cheapest way to buy it."""
    groups = {template.name: groups for template, groups in basis.templates}
    places: dict[Offering, int] = {}
    for node in nodes:
        candidate = candidate_of(
            node.template, groups[node.pool], node.requirements, node.instance_types, basis.well_known, places
        )
        # Counted over the whole plan: two claims must not both get the last place of a reservation.
        if candidate is not None:
            places[candidate.offering] = places.get(candidate.offering, 0) + 1
            yield replace(node, candidate=candidate)


def with_names(
    objects: ClusterObjects, nodes: Iterable[NodePlan], replaced_nodes: AbstractSet[str] = frozenset()
) -> tuple[NodePlan, ...]:
    """Return the nodes, each under a name that no node of the cluster or of the plan has.

    Args:
        replaced_nodes: the names of the nodes whose place they take.
    """
    taken_names = {node.metadata.name for node in (*objects.nodes, *objects.node_claims)}
    named_nodes: list[NodePlan] = []
    for node in nodes:
        # A node of this name that the plan does not count was bought by this plan, made before.
        name = next(name for name in _names(node, replaced_nodes) if name not in taken_names)
        taken_names.add(name)
        named_nodes.append(replace(node, name=name))
    return tuple(named_nodes)


def within_node_limits(basis: PlanBasis, nodes: Iterable[NodePlan]) -> tuple[NodePlan, ...]:
    """Return the nodes that NodePools' limits of nodes allow; the pods of the others go on waiting.

    Source: karpenter pkg/controllers/provisioning/provisioner.go (Create), v1.15.0.
    Differs: a plan does not count its own nodes there either, and those that are being created may exceed the limit.
    """
    # The solver's own limits lack the number of nodes: instance types have no such capacity. Upstream checks before
    # each creation.
    remaining = {pool: limits[NODES] for pool, limits in basis.limits.items() if NODES in limits}
    for state in basis.nodes:
        pool = state.labels.get(NODE_POOL, "")
        if pool in remaining and not state.is_leaving:
            remaining[pool] -= 1
    for claim in basis.objects.node_claims:
        pool = claim.metadata.labels.get(NODE_POOL, "")
        # Those without a machine are no nodes yet, and will be.
        if pool in remaining and not claim.status.provider_id and claim.metadata.deletion_timestamp is None:
            remaining[pool] -= 1
    within: list[NodePlan] = []
    for node in nodes:
        if node.pool in remaining:
            remaining[node.pool] -= 1
        if remaining.get(node.pool, 0) >= 0:
            within.append(node)
    return tuple(within)


def _names(node: NodePlan, replaced_nodes: AbstractSet[str]) -> Iterator[str]:
    candidate = node.node
    purpose = (
        node.pool,
        candidate.instance_type.name,
        candidate.offering.zone,
        candidate.offering.capacity_type,
        *sorted(pod.uid for pod in node.pods),
        *sorted(replaced_nodes),
    )
    # A name of an object has at most 253 characters, a label's value 63; the cut leaves room for the digest.
    pool = node.pool[:_POOL_LENGTH_MAX].rstrip("-.")
    return (f"{pool}-{_digest(*purpose, str(number))}" for number in itertools.count())


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_DIGEST_LENGTH]
