"""The methods by which Karpenter disrupts nodes: emptiness, drift, and consolidation of several nodes or of one.

Owns which candidates each method tries and in which order, and what would become of its command 15 seconds later.

Source: karpenter pkg/controllers/disruption emptiness.go, drift.go, multinodeconsolidation.go,
singlenodeconsolidation.go and validation.go, v1.15.0.
Differs: no deadlines but that of a question; candidates of equal rank go by name, and single-node consolidation takes
NodePools by name.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.provisioner.apis.budgets import DisruptionReason
from podium.provisioner.apis.dialects import RESERVATION_IDS
from podium.provisioner.apis.labels import RESERVED
from podium.provisioner.disruption.candidates import Candidate
from podium.provisioner.disruption.consolidation import Command, NoCommand
from podium.provisioner.disruption.disruption_state import DisruptionState, by_savings
from podium.provisioner.disruption.simulation import Simulation
from podium.provisioner.provisioning.reasons import Reason

VALIDATED_AFTER_S: Final = 15.0
"""How long after it was found a command is looked at again."""

TOGETHER_MAX: Final = 100
"""How many candidates beyond the first multi-node consolidation looks at."""

_NEW_RESULTS: Final = Reason(
    "validating command, scheduling simulation produced new results", "other nodes would take their place now"
)


@dataclass(frozen=True, slots=True)
class Rules:
    """The demands on a command of consolidation. Without arguments these are Karpenter's rules.

    Attributes:
        to_several: Whether more than one node may take the place of those that go.
        savings_min: What a command must save in an hour, at least.
        only_launchable: Whether a replacement names only instance types that can be launched. Karpenter's may name
            others, or none that can be, so that the command fails.
        limit: When a search ends with the best command by then; it is looked at between two simulations.
    """

    to_several: bool = False
    savings_min: float = 0.0
    only_launchable: bool = False
    limit: TimeLimit = UNLIMITED


KARPENTERS: Final = Rules()


# ---------------------------------------------------------------- emptiness


def emptiness(state: DisruptionState, rules: Rules = KARPENTERS) -> Command | None:
    """Remove all nodes that are empty, within the budgets."""
    # A node without pods needs no simulation: nothing has to be placed elsewhere.
    empty = by_savings(candidate for candidate in state.candidates if candidate.goes_when_empty)
    command = Command(tuple(_without_broken_gangs(state, within_budgets(state, "Empty", empty))))
    return command if command.candidates and _saves_enough(command, rules, command.price) else None


def still_empty(state: DisruptionState, command: Command) -> tuple[Candidate, ...] | str:
    """Return the nodes of the command that are still empty, or why none of them goes."""
    names = {candidate.name for candidate in command.candidates}
    candidates = [candidate for candidate in state.candidates if candidate.goes_when_empty and candidate.name in names]
    if not candidates:
        return Reason(f"{len(names)} candidates are no longer valid", "none of them is empty any more")
    within = _without_broken_gangs(state, within_budgets(state, "Empty", candidates))
    if not within:
        return Reason(
            f"{len(names)} candidates failed validation because it they were nominated for a pod or would violate "
            "disruption budgets",
            "the budgets of their NodePools do not allow it any more",
        )
    return tuple(within)


def _without_broken_gangs(state: DisruptionState, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return as many of the candidates as can go together without breaking a gang, in their order."""
    going: list[Candidate] = []
    for candidate in candidates:
        # A node whose pods cost nothing to evict counts as empty. Without pods there is nothing to look at.
        if not candidate.pods or not state.simulator.broken_gangs([*going, candidate]):
            going.append(candidate)
    return going


def within_budgets(
    state: DisruptionState, reason: DisruptionReason, candidates: Iterable[Candidate]
) -> list[Candidate]:
    """Return as many candidates of each NodePool as its budgets allow, in their order."""
    budgets = state.budgets(reason)
    within: list[Candidate] = []
    for candidate in candidates:
        if budgets[candidate.pool_name]:
            budgets[candidate.pool_name] -= 1
            within.append(candidate)
    return within


# ---------------------------------------------------------------- drift


def drift(state: DisruptionState) -> Command | None:
    """Replace the node that has drifted first; nodes without pods go before the others."""
    budgets = state.budgets("Drifted")
    candidates = sorted(
        state.drift_candidates,
        # Empty ones disrupt no pod, and among the others the one that has drifted for longest goes first.
        key=lambda candidate: (bool(candidate.pods), candidate.conditions.drifted_since_s, candidate.name),
    )
    for candidate in candidates:
        if not budgets[candidate.pool_name]:
            continue
        simulation = state.simulator.without([candidate])
        if simulation is None:
            return None
        if not simulation.stranded:
            return Command((candidate,), simulation, simulation.plan.nodes)
        simulation_first = _with_its_place_freed(state, candidate)
        if simulation_first is not None:
            return Command((candidate,), simulation_first, goes_first=True)
    return None


def _with_its_place_freed(state: DisruptionState, candidate: Candidate) -> Simulation | None:
    """Simulate that the node goes first, and its place in a full reservation serves its pods; None if it does not."""
    labels = candidate.state.labels
    reservation = next((labels[key] for key in RESERVATION_IDS if labels.get(key)), None)
    if not state.basis.settings.terminates_first or candidate.capacity_type != RESERVED or not reservation:
        return None
    simulation = state.simulator.without([candidate], is_strict=True, credit={reservation: 1})
    return simulation if simulation is not None and not simulation.stranded else None


# ---------------------------------------------------------------- consolidation


def multi_node(state: DisruptionState, rules: Rules = KARPENTERS) -> Command | None:
    """Consolidate the longest series of candidates, from the best on, that a binary search finds."""
    candidates = within_budgets(state, "Underutilized", state.consolidatable)
    last: Command | None = None
    # At least two nodes: one alone is the next method's. Each step simulates the whole prefix, so only log n prefixes
    # are tried.
    low, high = 1, min(len(candidates) - 1, TOGETHER_MAX)
    while low <= high and not rules.limit.is_over():
        middle = (low + high) // 2
        command = together(state, candidates[: middle + 1], rules)
        if isinstance(command, Command):
            last, low = command, middle + 1
        else:
            high = middle - 1
    return last


def single_node(state: DisruptionState, rules: Rules = KARPENTERS) -> Command | None:
    """Consolidate the first candidate that can be."""
    budgets = state.budgets("Underutilized")
    for candidate in rules.limit.take(in_turn(state.consolidatable)):
        command = alone(state, candidate, rules) if budgets[candidate.pool_name] else None
        if isinstance(command, Command):
            return command
    return None


def together(state: DisruptionState, candidates: Sequence[Candidate], rules: Rules = KARPENTERS) -> Command | NoCommand:
    """Decide on several candidates at once, budgets aside."""
    return _approve(state, state.consolidation.of_several(candidates, to_several=rules.to_several), rules)


def alone(state: DisruptionState, candidate: Candidate, rules: Rules = KARPENTERS) -> Command | NoCommand:
    """Decide on one candidate, budgets aside."""
    # A simulation costs far more than this test, which no replacement could make pass.
    if not state.balance.may_approve(candidate):
        return NoCommand()
    return _approve(state, state.consolidation.of([candidate], to_several=rules.to_several), rules)


def _saves_enough(command: Command, rules: Rules, savings: float) -> bool:
    """Return True if the command surely saves what the rules demand: without prices no savings are known."""
    return rules.savings_min <= 0 or (command.is_priced and savings >= rules.savings_min)


def _approve(state: DisruptionState, decision: Command | NoCommand, rules: Rules) -> Command | NoCommand:
    if isinstance(decision, Command) and rules.only_launchable:
        decision = decision.launchable(state.basis.well_known)
    if isinstance(decision, NoCommand):
        return decision
    if not _saves_enough(decision, rules, decision.savings(state.basis.well_known)):
        text = f"Saves less than {rules.savings_min:g} per hour"
        if not decision.is_priced:
            text = f"May save less than {rules.savings_min:g} per hour: the catalogue does not have all prices"
        return NoCommand(text, is_too_dear=True)
    return decision if state.balance.approves(decision) else NoCommand()


def in_turn(candidates: Sequence[Candidate]) -> list[Candidate]:
    # In turn, so that a large NodePool does not use up upstream's three minutes before the next one is looked at.
    """Return the candidates of all NodePools in turn, each NodePool's in their order."""
    pools: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        pools.setdefault(candidate.pool_name, []).append(candidate)
    rounds = itertools.zip_longest(*(pools[name] for name in sorted(pools)))
    return [candidate for round_ in rounds for candidate in round_ if candidate is not None]


def consolidation_fault(state: DisruptionState, command: Command) -> str | None:
    """Return the reason why the command of a consolidation no longer holds, or None if it holds."""
    names = {candidate.name for candidate in command.candidates}
    candidates = [
        candidate for candidate in state.candidates if candidate.is_consolidatable and candidate.name in names
    ]
    if len(candidates) != len(names):
        missing_count = len(names) - len(candidates)
        return Reason(
            f"validating candidates, {missing_count} candidates are no longer valid",
            f"{missing_count} of them may not go any more",
        )
    if len(within_budgets(state, "Underutilized", candidates)) != len(candidates):
        return Reason(
            "validating candidates, a candidate can no longer be disrupted without violating budgets",
            "the budgets of their NodePools do not allow it any more",
        )
    simulation = state.simulator.without(candidates, is_consolidation=True)
    if simulation is None:
        return Reason(
            "validating command, simluating scheduling, creating scheduler, no nodepools found",
            "there is no NodePool to buy from any more",
        )
    if simulation.stranded:
        text = simulation.stranded_text()
        return Reason(f"validating command, {text}", text.own)
    nodes = simulation.plan.nodes
    # More nodes than the command has would be bought now, or fewer would do: a better command is found in the next
    # pass.
    if len(nodes) > 1 or len(nodes) != len(command.replacements):
        return _NEW_RESULTS
    for replacement, node in zip(command.replacements, nodes, strict=True):
        # The command's types must still do. That there are more of them now is no reason to give it up.
        if not {instance_type.name for instance_type in replacement.instance_types} <= {
            instance_type.name for instance_type in node.instance_types
        }:
            return _NEW_RESULTS
    return None
