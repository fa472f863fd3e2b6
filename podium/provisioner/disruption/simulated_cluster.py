"""Simulates the cluster after a command was carried out.

Owns the objects of the nodes that were bought, and where pods are then. The cluster before stays as it is.

Invariant: pods go where the command's simulation put them. Those that it put nowhere, such as pods that a
PodDisruptionBudget holds, are in no plan any more.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from podium.provisioner.disruption.consolidation import Command
from podium.provisioner.disruption.disruption_state import DisruptionState
from podium.provisioner.provisioning.launched import launched_claim, launched_node
from podium.provisioner.provisioning.launching import with_candidates
from podium.provisioner.provisioning.plan import NodePlan


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedCluster:
    """The cluster once a command was carried out.

    Attributes:
        new: The nodes that were bought.
        moves: By pod, the node that it is on now: pods of the nodes that went, and pods that waited.
        held: Pods of the nodes that went for which there is no place yet, because something holds them where they are.
    """

    state: DisruptionState
    new: tuple[NodePlan, ...]
    moves: Mapping[str, str]
    held: tuple[str, ...]


def after(state: DisruptionState, command: Command) -> SimulatedCluster:
    """Carry the command out. New nodes are never candidates for another one."""
    new = tuple(_nodes_launched(state, command))
    moves = _moves(state, command, new)
    removed_nodes = {candidate.name for candidate in command.candidates}
    claims = {candidate.claim.metadata.name for candidate in command.candidates}
    objects = state.basis.objects
    pods = tuple(
        pod.on_node(moves[pod.key]) if pod.key in moves else pod
        for pod in objects.pods
        if pod.key in moves or pod.node_name not in removed_nodes
    )
    held_pods = tuple(pod.key for candidate in command.candidates for pod in candidate.pods if pod.key not in moves)
    objects_after = dataclasses.replace(
        objects,
        nodes=(*(node for node in objects.nodes if node.name not in removed_nodes), *map(launched_node, new)),
        node_claims=(
            *(claim for claim in objects.node_claims if claim.metadata.name not in claims),
            *map(launched_claim, new),
        ),
        pods=pods,
    )
    fixed_nodes = state.fixed_nodes | {node.name for node in new}
    return SimulatedCluster(state.with_objects(objects_after, fixed_nodes), new, moves, held_pods)


def _nodes_launched(state: DisruptionState, command: Command) -> Iterator[NodePlan]:
    """Yield the nodes to buy: of the cheapest type, where it is cheapest, with names only for this plan.

    Unlike in a plan of purchases, each is chosen by itself: the replacements may share a reservation.
    """
    taken_names = {node.name for node in state.basis.nodes}
    # A plan of several commands must not name two nodes alike: the next command refers to them.
    names = (name for number in itertools.count(1) if (name := f"new-{number}") not in taken_names)
    for node, name in zip(command.replacements, names, strict=False):
        for launched in with_candidates(state.basis, (node,)):
            yield dataclasses.replace(launched, name=name)


def _moves(state: DisruptionState, command: Command, new: Iterable[NodePlan]) -> Mapping[str, str]:
    movable = {pod.key for candidate in command.candidates for pod in candidate.pods}
    simulation = command.simulation
    if simulation is not None:
        # Pending pods were in the simulation, and the new nodes may be what they waited for.
        movable.update(pod.key for pod in state.basis.objects.pods if not pod.node_name)
    elif movable:
        # Empty nodes may have pods that cost nothing to evict, and Karpenter does not look where they go.
        simulation = state.simulator.without(command.candidates)
    if simulation is None:
        return {}
    plan = simulation.plan
    targets = {pod.key: name for name, pods in plan.existing.items() for pod in pods}
    for node in new:
        targets.update((pod.key, node.name) for pod in node.pods)
    return {pod: name for pod, name in targets.items() if pod in movable and pod not in plan.unschedulable}
