"""What a cluster is like once a command was carried out.

Owns the objects of the nodes that were bought, and where pods are then. The cluster before stays as it is.

Invariant: pods go where the command's simulation put them. Those that it put nowhere, such as pods that a
PodDisruptionBudget holds, are in no plan any more.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from podium.objects.core import NodeCondition
from podium.objects.meta import ObjectMeta, ResourceList
from podium.provisioner.apis.labels import HOSTNAME, INSTANCE_TYPE, SIMULATED
from podium.provisioner.apis.objects import (
    READY_CLAIM,
    NodeClaim,
    NodeClaimSpec,
    NodeClaimStatus,
    ProvidedNode,
    ProvidedNodeSpec,
    ProvidedNodeStatus,
)
from podium.provisioner.cloudprovider.instance_types import InstanceType, Offering
from podium.provisioner.disruption.consolidation import Command
from podium.provisioner.disruption.disruption_state import DisruptionState
from podium.provisioner.provisioning.plans import Purchase
from podium.provisioner.scheduling.amounts import quantities
from podium.provisioner.scheduling.requirements import Requirements


@dataclass(frozen=True, slots=True, eq=False)
class NewNode:
    """A node that was bought: of the cheapest instance type, where it is cheapest.

    Attributes:
        name: A name for the plan; the node itself will have another.
        price: What it costs in an hour.
    """

    name: str
    purchase: Purchase
    instance_type: InstanceType
    offering: Offering

    @property
    def price(self) -> float:
        """What it costs in an hour."""
        return self.offering.price


@dataclass(frozen=True, slots=True, eq=False)
class Aftermath:
    """The cluster once a command was carried out.

    Attributes:
        new: The nodes that were bought.
        moves: By pod, the node that it is on now: pods of the nodes that went, and pods that waited.
        held: Pods of the nodes that went for which there is no place yet, because something holds them where they are.
    """

    state: DisruptionState
    new: tuple[NewNode, ...]
    moves: Mapping[str, str]
    held: tuple[str, ...]


def after(state: DisruptionState, command: Command) -> Aftermath:
    """Carry the command out. New nodes are never candidates for another one."""
    well_known = state.basis.well_known
    known = {each.name for each in state.basis.nodes}
    names = (name for number in itertools.count(1) if (name := f"new-{number}") not in known)
    new = tuple(_new_node(name, each, well_known) for each, name in zip(command.replacements, names, strict=False))
    moves = _moves(state, command, new)
    removed = {each.name for each in command.candidates}
    claims = {each.claim.metadata.name for each in command.candidates}
    objects = state.basis.objects
    pods = tuple(
        each if each.key not in moves else each.on_node(moves[each.key])
        for each in objects.pods
        if each.key in moves or each.node_name not in removed
    )
    held = tuple(pod.key for each in command.candidates for pod in each.pods if pod.key not in moves)
    changed = dataclasses.replace(
        objects,
        nodes=(*(each for each in objects.nodes if each.name not in removed), *(_node(each) for each in new)),
        node_claims=(
            *(each for each in objects.node_claims if each.metadata.name not in claims),
            *(_claim(each) for each in new),
        ),
        pods=pods,
    )
    fixed = state.fixed | {each.name for each in new}
    return Aftermath(state.changed(changed, fixed), new, moves, held)


def _moves(state: DisruptionState, command: Command, new: Iterable[NewNode]) -> Mapping[str, str]:
    movable = {pod.key for each in command.candidates for pod in each.pods}
    simulation = command.simulation
    if simulation is not None:
        movable.update(pod.key for pod in state.basis.objects.pods if not pod.node_name)
    elif movable:
        # Empty nodes may have pods that cost nothing to evict, and Karpenter does not look where they go.
        simulation = state.simulator.without(command.candidates)
    if simulation is None:
        return {}
    outcome = simulation.outcome
    found = {pod.key: name for name, pods in outcome.existing.items() for pod in pods}
    for node in new:
        found.update((pod.key, node.name) for pod in node.purchase.claim.pods)
    return {pod: name for pod, name in found.items() if pod in movable and pod not in outcome.errors}


def _new_node(name: str, purchase: Purchase, well_known: frozenset[str]) -> NewNode:
    """The node of the cheapest instance type, in the zone that is cheapest; ties go by name."""
    requirements = purchase.requirements
    offered = [
        (each, offering)
        for each in purchase.instance_types
        for offering in each.offerings
        if offering.is_launchable and requirements.is_compatible(offering.requirements, well_known)
    ]
    chosen = min(offered, key=lambda found: (found[1].price, found[0].name, found[1].zone, found[1].capacity_type))
    return NewNode(name, purchase, *chosen)


def _labels(new: NewNode) -> dict[str, str]:
    merged = Requirements(
        each
        for part in (new.purchase.requirements, new.instance_type.requirements, new.offering.requirements)
        for each in part
    )
    found = {each.key: min(each.values) for each in merged if each.operator == "In"}
    return {**found, **dict.fromkeys(SIMULATED, "true"), INSTANCE_TYPE: new.instance_type.name, HOSTNAME: new.name}


def _amounts(new: NewNode) -> tuple[ResourceList, ResourceList]:
    """Capacity and allocatable."""
    capacity = {**new.instance_type.capacity, **(new.offering.capacity_override or {})}
    return quantities(capacity), quantities(new.instance_type.allocatable_of(new.offering))


def _node(new: NewNode) -> ProvidedNode:
    capacity, allocatable = _amounts(new)
    return ProvidedNode(
        metadata=ObjectMeta(name=new.name, labels=_labels(new)),
        spec=ProvidedNodeSpec(taints=new.purchase.claim.template.taints, provider_id=f"plan://{new.name}"),
        status=ProvidedNodeStatus(
            capacity=capacity, allocatable=allocatable, conditions=(NodeCondition(type="Ready", status="True"),)
        ),
    )


def _claim(new: NewNode) -> NodeClaim:
    capacity, allocatable = _amounts(new)
    pool = new.purchase.claim.template.pool
    return NodeClaim(
        metadata=ObjectMeta(name=new.name, labels=_labels(new)),
        spec=NodeClaimSpec(node_class_ref=pool.spec.template.spec.node_class_ref),
        status=NodeClaimStatus(
            provider_id=f"plan://{new.name}", capacity=capacity, allocatable=allocatable, conditions=READY_CLAIM
        ),
    )
