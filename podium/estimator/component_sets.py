"""Counts the complete sets of components that fit, placed first fit.

The sets are placed one after the other. Each component of a set goes to the first nodes that can take some of its
replicas, until one does not fit. The placed part of that last set stays placed.

Cost: proportional to the number of components and of nodes that become full, not to the number of sets. Consecutive
sets on the same nodes are placed in one step.
Source: karmada pkg/estimator/scheduling_simulator_components.go, v1.18.
Differs: a set with a negative number of replicas never fits; upstream gives its capacity back. A set that takes
nothing fits without limit, at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from podium.estimator.amounts import Demand, demands
from podium.estimator.free_capacity import FreeCapacity, RemainingCapacity, fitting
from podium.estimator.requirements import MAX_INT32, AssumedWorkload, Component

_Column: TypeAlias = list[int]


@dataclass(slots=True)
class _Placing:
    """The placement of one component.

    Invariant: no node before `nodes[at]` takes another replica.
    """

    replicas: int
    need: tuple[tuple[_Column, int], ...]
    nodes: Sequence[int]
    at: int = 0

    def fits(self, node: int) -> int:
        """Return how many replicas the node takes."""
        return min(column[node] // amount for column, amount in self.need)

    def first_node(self) -> int | None:
        """Return the first node that takes a replica."""
        while self.at < len(self.nodes):
            node = self.nodes[self.at]
            if self.fits(node):
                return node
            # Nodes only ever fill up, so one that is full is never looked at again.
            self.at += 1
        return None

    def take(self, node: int, replicas: int) -> None:
        """Place replicas on a node."""
        for column, amount in self.need:
            column[node] -= amount * replicas

    def place(self) -> bool:
        """Place all replicas, as many on each node as fit. False if not all of them fit."""
        replicas_left = self.replicas
        while replicas_left:
            node = self.first_node()
            if node is None:
                return False
            replicas_here = min(replicas_left, self.fits(node))
            self.take(node, replicas_here)
            replicas_left -= replicas_here
        return True


class SetPlacement:
    """A placement of component sets. It shares no data, so it can run in a thread.

    Raises:
        FieldError: an amount cannot be read.
    """

    def __init__(self, capacity: RemainingCapacity, components: Iterable[Component | None]) -> None:
        present = [component for component in components if component is not None]
        self._is_impossible = any(component.replicas < 0 for component in present)
        self._placings = [_placing(capacity, component) for component in present if component.replicas > 0]

    def run(self, sets_max: int = MAX_INT32) -> int:
        """Place as many complete sets as fit, at most `sets_max`, and subtract them from the free capacity."""
        placings, sets = self._placings, 0
        if self._is_impossible:
            return 0
        if not placings:
            return sets_max
        while sets < sets_max:
            # Many equal sets at once: as long as all first nodes stay the same, only division is needed.
            alike = min(_sets_on_the_same_nodes(placings), sets_max - sets)
            if alike:
                for placing in placings:
                    placing.take(placing.nodes[placing.at], placing.replicas * alike)
                sets += alike
            elif all(placing.place() for placing in placings):
                sets += 1
            else:
                break
        return sets


def max_available_sets(
    capacity: FreeCapacity,
    components: Sequence[Component | None],
    assumed_workloads: Iterable[AssumedWorkload] = (),
    sets_max: int = MAX_INT32,
) -> int:
    """Return how many complete sets fit beside the assumed workloads.

    Raises:
        FieldError: an amount cannot be read.
    """
    return SetPlacement(without_assumed(capacity, assumed_workloads, components), components).run(sets_max)


def without_assumed(
    capacity: FreeCapacity, assumed_workloads: Iterable[AssumedWorkload], components: Iterable[Component | None] = ()
) -> RemainingCapacity:
    """Return the free capacity after each assumed workload is placed once, as far as it fits.

    Args:
        components: what will be placed afterwards.

    Raises:
        FieldError: an amount cannot be read.
    """
    workloads = [workload.components for workload in assumed_workloads]
    every = [component for group in (components, *workloads) for component in group if component is not None]
    reduced = RemainingCapacity(capacity, {demand.resource for component in every for demand in _demands(component)})
    for group in workloads:
        SetPlacement(reduced, group).run(sets_max=1)
    return reduced


def _demands(component: Component) -> tuple[Demand, ...]:
    requirements = component.replica_requirements
    return demands(requirements.resource_request) if requirements is not None else ()


def _placing(capacity: RemainingCapacity, component: Component) -> _Placing:
    amounts, requirements = _demands(component), component.replica_requirements
    claim = requirements.node_claim if requirements is not None else None
    nodes = np.flatnonzero(fitting(capacity, amounts, claim)).tolist()
    need = ((capacity.pods, 1), *((capacity.amounts[resource], amount) for resource, amount in amounts))
    return _Placing(component.replicas, need, nodes)


def _sets_on_the_same_nodes(placings: Iterable[_Placing]) -> int:
    """Return how many of the next sets fit with each component entirely on its current first node."""
    usage: dict[tuple[int, int], int] = defaultdict(int)
    columns: dict[int, _Column] = {}
    for placing in placings:
        node = placing.first_node()
        if node is None:
            return 0
        for column, amount in placing.need:
            columns[id(column)] = column
            # Components may share a node and a resource, so what they take is added up before it is compared.
            usage[id(column), node] += amount * placing.replicas
    return min(columns[column][node] // amount for (column, node), amount in usage.items())
