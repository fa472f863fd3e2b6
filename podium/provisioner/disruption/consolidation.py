"""Decides whether some nodes can go together, and what takes their place.

Owns the one step that every search for nodes to consolidate is made of. Never chooses the nodes.

Source: karpenter pkg/controllers/disruption/consolidation.go (computeConsolidation), types.go (EstimatedSavings) and
multinodeconsolidation.go (filterOutSameInstanceType), v1.15.0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from podium.provisioner.apis.labels import CAPACITY_TYPE, ON_DEMAND, SPOT
from podium.provisioner.cloudprovider.instance_types import NO_PRICE, needed_for_min_values, unmet_min_values
from podium.provisioner.disruption.candidates import Candidate
from podium.provisioner.disruption.simulation import Simulation, Simulator
from podium.provisioner.provisioning.plan import NodePlan, unmet_text
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.provisioning.reasons import Reason
from podium.provisioner.scheduling.requirements import Requirement, Requirements
from podium.provisioner.state.costs import sum_in_order

SPOT_ALTERNATIVES_MIN: Final = 15
"""How many cheaper instance types there must be to replace one spot node with another."""

Decision: TypeAlias = Literal["delete", "replace", "terminate-first"]

NOT_ALL_WOULD_SCHEDULE: Final = Reason("Not all pods would schedule", "Not all of its pods would find another node")

_SPOT_STAYS: Final = Reason(
    "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node",
    "A spot node is not replaced by another one (SpotToSpotConsolidation is off)",
)
_NOTHING_CHEAPER: Final = "Nothing that costs less, or without prices is smaller, could take its place"
_ONLY_SPOT: Final = Requirement(CAPACITY_TYPE, False, frozenset((SPOT,)))


@dataclass(frozen=True, slots=True, eq=False)
class Command:
    """Nodes that go, and what takes their place.

    Attributes:
        simulation: Where the pods go; None if they are not looked at.
        goes_first: Whether the node must be gone before there is room for another in its place.
    """

    candidates: tuple[Candidate, ...]
    simulation: Simulation | None = None
    replacements: tuple[NodePlan, ...] = ()
    goes_first: bool = False

    @property
    def decision(self) -> Decision:
        """The kind of the command: whether other nodes take the place of those that go."""
        if self.goes_first:
            return "terminate-first"
        return "replace" if self.replacements else "delete"

    @property
    def price(self) -> float:
        """The price of the nodes that go."""
        return sum_in_order(candidate.price for candidate in self.candidates)

    def savings(self, well_known: frozenset[str]) -> float:
        """Return the savings per hour. A replacement that cannot be launched costs nothing, as upstream."""
        return self.price - sum_in_order(replacement.price(well_known) or 0.0 for replacement in self.replacements)

    @property
    def is_priced(self) -> bool:
        """Return True if what is saved is known: all nodes that go, and all that come, have prices."""
        return all(candidate.is_priced for candidate in self.candidates) and all(
            replacement.is_priced for replacement in self.replacements
        )

    def shown_savings(self, well_known: frozenset[str]) -> float | None:
        """Return the savings per hour, or None if they are not known."""
        return self.savings(well_known) if self.is_priced else None

    def launchable(self, well_known: frozenset[str]) -> Command | NoCommand:
        """Return the command with only the instance types that can be launched, the cheapest first."""
        replacements = tuple(replacement.launchable(well_known) for replacement in self.replacements)
        if not all(replacement.instance_types for replacement in replacements):
            return NoCommand("What would replace it cannot be launched", is_too_dear=True)
        return dataclasses.replace(self, replacements=replacements)


@dataclass(frozen=True, slots=True, eq=False)
class NoCommand:
    """The reason why nodes stay.

    Attributes:
        reason: A sentence; empty if Karpenter tells none.
        stranded: By pod, why it would find no place.
        is_too_dear: Whether all pods would find a place, but at too high a price: with more nodes it may be worth it.
    """

    reason: str = ""
    stranded: Mapping[str, str] = field(default_factory=dict)
    is_too_dear: bool = False


class Consolidation:
    """Removes nodes whose pods fit elsewhere, or replaces them with one that is cheaper; remembers what it found."""

    def __init__(self, basis: PlanBasis, simulator: Simulator) -> None:
        self._basis = basis
        self._simulator = simulator
        self._known: dict[tuple[bool, tuple[str, ...]], Command | NoCommand] = {}

    def of(self, candidates: Sequence[Candidate], *, to_several: bool = False) -> Command | NoCommand:
        """Return the command that removes all of these, or the reason why no command does.

        Args:
            to_several: whether more than one node may take their place, which Karpenter never does.
        """
        key = to_several, tuple(candidate.name for candidate in candidates)
        decision = self._known.get(key)
        if decision is None:
            decision = self._known[key] = self._find(candidates, to_several)
        return decision

    def of_several(self, candidates: Sequence[Candidate], *, to_several: bool = False) -> Command | NoCommand:
        """Decide as `of` does, but never replace by a type that is removed or as dear as the cheapest such node.

        One of these nodes could then have stayed instead.
        """
        # Without this rule, nodes are replaced by one of their own type, which a smaller command that only deletes
        # achieves too.
        decision = self.of(candidates, to_several=to_several)
        if isinstance(decision, NoCommand) or len(decision.replacements) != 1:
            return decision
        replacement = self._cheaper(decision.replacements[0], self._price_of_same_type(decision))
        if isinstance(replacement, NoCommand):
            return replacement
        return dataclasses.replace(decision, replacements=(replacement,))

    def _find(self, candidates: Sequence[Candidate], to_several: bool) -> Command | NoCommand:
        simulation = self._simulator.without(candidates, is_consolidation=True)
        if simulation is None:
            return NoCommand()
        if simulation.stranded:
            return NoCommand(NOT_ALL_WOULD_SCHEDULE, simulation.stranded)
        nodes = simulation.plan.nodes
        if not nodes:
            return Command(tuple(candidates), simulation)
        if len(nodes) > 1 and to_several:
            return self._several_replacements(tuple(candidates), simulation)
        # Upstream's limit: proving that several launches stay cheaper together is left to the option `to_several`.
        if len(nodes) > 1:
            return NoCommand(
                Reason(
                    f"Can't remove without creating {len(nodes)} candidates",
                    f"Its pods would need {len(nodes)} new nodes, and only one may take its place",
                )
            )
        replacement = self._replacement(candidates, nodes[0])
        if isinstance(replacement, NoCommand):
            return replacement
        return Command(tuple(candidates), simulation, (replacement,))

    def _replacement(self, candidates: Sequence[Candidate], node: NodePlan) -> NodePlan | NoCommand:
        price = sum_in_order(candidate.price for candidate in candidates)
        capacity_types = node.requirements.get(CAPACITY_TYPE)
        # A spot node can always be "cheaper" elsewhere. Without a rule of their own, spot nodes would be replaced
        # without end.
        if capacity_types.has(SPOT) and all(candidate.capacity_type == SPOT for candidate in candidates):
            return self._spot_replacement(candidates, node, price)
        cheaper = self._cheaper(node, price)
        return _only_spot(cheaper) if isinstance(cheaper, NodePlan) else cheaper

    def _spot_replacement(self, candidates: Sequence[Candidate], node: NodePlan, price: float) -> NodePlan | NoCommand:
        if not self._basis.settings.replaces_spot_with_spot:
            return NoCommand(_SPOT_STAYS)
        requirements = node.requirements.add(_ONLY_SPOT)
        types = tuple(
            instance_type
            for instance_type in node.instance_types
            if any(
                offering.is_available and requirements.is_compatible(offering.requirements, self._basis.well_known)
                for offering in instance_type.offerings
            )
        )
        cheaper = self._cheaper(dataclasses.replace(node, requirements=requirements, instance_types=types), price)
        # Several nodes become one, so each step makes the cluster smaller and the search ends without a minimum of
        # types.
        if isinstance(cheaper, NoCommand) or len(candidates) > 1:
            return cheaper
        types = cheaper.instance_types
        if len(types) < SPOT_ALTERNATIVES_MIN:
            return NoCommand(
                Reason(
                    f"SpotToSpotConsolidation requires {SPOT_ALTERNATIVES_MIN} cheaper instance type options than the "
                    f"current candidate to consolidate, got {len(types)}",
                    f"A spot node is replaced by another one only where {SPOT_ALTERNATIVES_MIN} instance types cost "
                    f"less, and {len(types)} do",
                )
            )
        # More than these would let the node be replaced again as soon as it is there.
        count = max(SPOT_ALTERNATIVES_MIN, needed_for_min_values(types, requirements))
        return dataclasses.replace(cheaper, instance_types=types[:count])

    def _several_replacements(self, candidates: tuple[Candidate, ...], simulation: Simulation) -> Command | NoCommand:
        """Return the command with replacements that are cheaper together, even if each is launched at its worst."""
        nodes = [_only_spot(node) for node in simulation.plan.nodes]
        if (
            not self._basis.settings.replaces_spot_with_spot
            # The gate stands for several replacements as for one.
            and all(candidate.capacity_type == SPOT for candidate in candidates)
            and any(node.requirements.get(CAPACITY_TYPE).has(SPOT) for node in nodes)
        ):
            return NoCommand(_SPOT_STAYS)
        least = [min(self._worst_prices(node), default=NO_PRICE) for node in nodes]
        savings = sum_in_order(candidate.price for candidate in candidates) - sum_in_order(least)
        if savings <= 0:
            return NoCommand(Reason("Can't replace with cheaper nodes", _NOTHING_CHEAPER), is_too_dear=True)
        # What is saved is shared out: each replacement may be that much dearer than its cheapest type.
        replacements: list[NodePlan] = []
        for node, price in zip(nodes, least, strict=True):
            cheaper = self._cheaper(node, price + savings / len(nodes))
            if isinstance(cheaper, NoCommand):
                return cheaper
            replacements.append(cheaper)
        return Command(candidates, simulation, tuple(replacements))

    def _worst_prices(self, node: NodePlan) -> list[float]:
        return [
            instance_type.worst_launch_price(node.requirements, self._basis.well_known)
            for instance_type in node.instance_types
        ]

    def _cheaper(self, node: NodePlan, price: float) -> NodePlan | NoCommand:
        """Return the node with the instance types that are cheaper than this even at their worst."""
        requirements = node.requirements
        types = tuple(
            instance_type
            for instance_type in node.instance_types
            # At their worst, since the provider chooses the zone: a launch that turned out dearer would be consolidated
            # again.
            if instance_type.worst_launch_price(requirements, self._basis.well_known) < price
        )
        unmet = unmet_min_values(types, requirements)
        if unmet:
            podium_words = (
                f"What costs less has too few values of {', '.join(sorted(unmet))} for the minValues of the NodePool"
            )
            return NoCommand(Reason(f"Filtering by price: {unmet_text(unmet)}", podium_words), is_too_dear=True)
        if not types:
            return NoCommand(Reason("Can't replace with a cheaper node", _NOTHING_CHEAPER), is_too_dear=True)
        return dataclasses.replace(node, instance_types=types)

    def _price_of_same_type(self, command: Command) -> float:
        """Return the price of the cheapest leaving node whose type could take its place; 0 if one has no price."""
        prices: dict[str, float] = {}
        for candidate in command.candidates:
            assert candidate.instance_type is not None
            # By the cheapest offering of each removed node's type: replacing by that type must not cost more than
            # keeping one node.
            name = candidate.instance_type.name
            labels = Requirements.of_labels(candidate.state.labels)
            prices_offered = (
                offering.price
                for offering in candidate.instance_type.offerings
                if labels.is_compatible(offering.requirements, self._basis.well_known)
            )
            prices[name] = min(prices.get(name, NO_PRICE), min(prices_offered, default=NO_PRICE))
        options = {instance_type.name for instance_type in command.replacements[0].instance_types}
        same_type_prices = (0.0 if price == NO_PRICE else price for name, price in prices.items() if name in options)
        return min(same_type_prices, default=NO_PRICE)


def _only_spot(node: NodePlan) -> NodePlan:
    """Return the node, as spot if it may be spot or on-demand.

    The prices that are compared are those of spot: on-demand in its place might cost more than is saved.
    """
    # The price was compared as spot, so the launch must not fall back to on-demand, which may cost more than now.
    capacity_types = node.requirements.get(CAPACITY_TYPE)
    if capacity_types.has(SPOT) and capacity_types.has(ON_DEMAND):
        return dataclasses.replace(node, requirements=node.requirements.add(_ONLY_SPOT))
    return node
