"""Searches for nodes to consolidate together.

Owns three of them. `prefix` is Karpenter's: it tries the best candidates up to some point, so one that cannot go hides
all sets that leave it out. `greedy` skips what cannot go, and `exhaustive` tries every set of a few candidates. Each
finds one command; none of them changes the cluster.

Source: karpenter issue 1962 for what `prefix` misses.
Invariant: on one state `greedy` never saves less than `prefix`, and `exhaustive` never less than `greedy`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, TypeAlias, get_args

from podium.provisioner.disruption.candidates import Candidate
from podium.provisioner.disruption.consolidation import Command, NoCommand
from podium.provisioner.disruption.disruption_state import DisruptionState
from podium.provisioner.disruption.methods import (
    TOGETHER_MAX,
    Rules,
    alone,
    multi_node,
    single_node,
    together,
    within_budgets,
)

Search: TypeAlias = Literal["prefix", "greedy", "exhaustive"]
SEARCHES: Final[tuple[Search, ...]] = get_args(Search)

EXHAUSTIVE_MAX: Final = 8
"""Of how many candidates every set is tried. With more, `exhaustive` tries all sets of the best of them."""


def prefix(state: DisruptionState, rules: Rules) -> Command | None:
    """Search as Karpenter does: several nodes together, or else one."""
    return multi_node(state, rules) or single_node(state, rules)


def greedy(state: DisruptionState, rules: Rules) -> Command | None:
    """Take one candidate after the other, the best first, and skip those that cannot go with the ones taken.

    It begins once with none and once with what Karpenter would take.

    Cost: two simulations for each candidate, and those of `prefix`.
    """
    # `prefix` is the start of both walks, which is why `greedy` cannot save less.
    first = prefix(state, rules)
    from_first = None if first is None else _walk(state, rules, first.candidates)
    return _best(state, [first, _walk(state, rules, (), keeps_useless=True), from_first])


def exhaustive(state: DisruptionState, rules: Rules) -> Command | None:
    """Try every set of the best candidates.

    Cost: 2 to the power of `EXHAUSTIVE_MAX` simulations.
    """
    candidates = state.consolidatable[:EXHAUSTIVE_MAX]
    sets = (
        candidate_set
        for count in range(1, len(candidates) + 1)
        for candidate_set in itertools.combinations(candidates, count)
    )
    decisions = (
        _command(state, candidate_set, rules)
        for candidate_set in rules.limit.take(sets)
        if _is_within_budgets(state, candidate_set)
    )
    commands = [command for command in decisions if isinstance(command, Command)]
    return _best(state, [greedy(state, rules), *commands])


COMMAND_OF: Final[Mapping[Search, Callable[[DisruptionState, Rules], Command | None]]] = {
    "prefix": prefix,
    "greedy": greedy,
    "exhaustive": exhaustive,
}


def _walk(
    state: DisruptionState, rules: Rules, start: Iterable[Candidate], *, keeps_useless: bool = False
) -> Command | None:
    """Return the best command on a walk over all candidates that begins with some.

    Args:
        keeps_useless: whether to take a candidate as well that saves nothing yet, if its pods find a place. The next
            ones may make it worth while.
    """
    selection = list(start)
    budgets = state.budgets("Underutilized")
    for candidate in selection:
        budgets[candidate.pool_name] -= 1
    best: Command | None = None
    best_savings = 0.0
    if selection:
        command = _command(state, selection, rules)
        if isinstance(command, Command):
            best, best_savings = command, command.savings(state.basis.well_known)
    for candidate in rules.limit.take(state.consolidatable):
        # As many as multi-node consolidation looks at: a simulation grows with the pods of all candidates.
        if len(selection) > TOGETHER_MAX:
            break
        if candidate in selection or not budgets[candidate.pool_name]:
            continue
        command = _command(state, [*selection, candidate], rules)
        if isinstance(command, NoCommand):
            # Too dear with these nodes may be cheap with one more: the replacement is then shared by more of them.
            is_kept = keeps_useless and command.is_too_dear
        else:
            savings = command.savings(state.basis.well_known)
            is_better = best is None or savings > best_savings
            if is_better:
                best, best_savings = command, savings
            is_kept = is_better or keeps_useless
        if is_kept:
            selection.append(candidate)
            budgets[candidate.pool_name] -= 1
    return best


def _command(state: DisruptionState, candidates: Iterable[Candidate], rules: Rules) -> Command | NoCommand:
    candidates = tuple(candidates)
    return alone(state, candidates[0], rules) if len(candidates) == 1 else together(state, candidates, rules)


def _is_within_budgets(state: DisruptionState, candidates: tuple[Candidate, ...]) -> bool:
    return len(within_budgets(state, "Underutilized", candidates)) == len(candidates)


def _best(state: DisruptionState, commands: Iterable[Command | None]) -> Command | None:
    """Return the command that saves most; of equal ones the one that moves fewest nodes, then the first."""
    candidates = [command for command in commands if command is not None]
    if not candidates:
        return None
    return max(candidates, key=lambda command: (command.savings(state.basis.well_known), -len(command.candidates)))
