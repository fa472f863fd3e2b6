"""A whole consolidation: one command after the other until nothing more can go.

Owns the order of the commands, and why nodes are left. `plan_consolidation` is the one entry point:

    state = DisruptionState.of(objects, catalogue, Settings(), now)
    plan = plan_consolidation(state, ConsolidationOptions(search="greedy"))
    for command in plan.commands:
        print(command.nodes, command.moves, command.savings)

Differs: Karpenter carries out one command at a time and then looks again; here each one is taken as carried out, and
nothing else happens meanwhile. Drift is left out. A node that was bought for the plan is never replaced in it.
Replacements name only instance types that can be launched; upstream's command fails if none of them can.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from podium.lib.nearest import nearest
from podium.lib.time_limit import UNLIMITED, TimeIsUpError, TimeLimit
from podium.objects.errors import FieldError
from podium.provisioner.apis.budgets import DisruptionBudgets, DisruptionReason
from podium.provisioner.apis.objects import true_condition
from podium.provisioner.disruption import methods
from podium.provisioner.disruption.candidates import Blocker, Candidate
from podium.provisioner.disruption.consolidation import Command, Decision, NoCommand
from podium.provisioner.disruption.disruption_state import DisruptionState
from podium.provisioner.disruption.methods import Rules
from podium.provisioner.disruption.searches import COMMAND_OF, SEARCHES, Search
from podium.provisioner.disruption.simulated_cluster import SimulatedCluster, after
from podium.provisioner.provisioning.plan import NodePlan
from podium.provisioner.provisioning.reasons import Reason, in_karpenters_words, in_own_words, removal_reason
from podium.provisioner.reports.plan import monthly, node_json, warnings_json, without_simulated_labels
from podium.provisioner.reports.savings_bound import savings_bound
from podium.provisioner.state.costs import sum_in_order

EMPTY: Final[DisruptionReason] = "Empty"
UNDERUTILIZED: Final[DisruptionReason] = "Underutilized"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationOptions:
    """The options of a consolidation. Without arguments they are Karpenter's.

    Attributes:
        search: How to look for nodes that can go together: `prefix`, `greedy` or `exhaustive`. A plan is never worse
            than that of a search named before.
        allow_m_to_n: Whether more than one node may take the place of those that go.
        min_savings: What a command must save in an hour, at least.
        ignore_budgets: Whether any number of nodes may go at once.
        in_own_words: Whether reasons are given in podium's words, since its rules judge where pods fit.
    """

    search: Search = "prefix"
    allow_m_to_n: bool = False
    min_savings: float = 0.0
    ignore_budgets: bool = False
    in_own_words: bool = False


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PlannedCommand:
    """Nodes that go at once.

    Attributes:
        reason: `Empty`, or `Underutilized`.
        nodes: Those that go, by name.
        new: Those that take their place.
        moves: By pod, the node that it is on afterwards: pods of the nodes that go, and pods that waited.
        sources: By pod, the node that it was on; pods that waited are not among them.
        held: Pods of the nodes that go for which there is no place yet, because something holds them where they are:
            their nodes end only once they can go.
        savings: What is saved in an hour, or what takes its place where prices are not known.
        is_priced: Whether `savings` may be shown.
        warnings: What is taken for granted of the nodes that take their place.
    """

    reason: DisruptionReason
    decision: Decision
    nodes: tuple[str, ...]
    new: tuple[NodePlan, ...]
    moves: Mapping[str, str]
    sources: Mapping[str, str]
    held: tuple[str, ...]
    savings: float
    is_priced: bool
    warnings: tuple[str, ...] = ()

    @property
    def shown_savings(self) -> float | None:
        """The savings per hour; None if they are not known."""
        return self.savings if self.is_priced else None


@dataclass(frozen=True, slots=True, eq=False)
class ConsolidationPlan:
    """The commands in their order, and why the other nodes stay.

    Attributes:
        blockers: By node that stays, everything that keeps it there, after all commands; empty for the nodes that were
            bought.
        well_known: The labels that a NodeClaim need not define.
        is_partial: Whether the time was up before the search had ended; then no node has a blocker.
        in_own_words: Whether it is given in podium's words, since its rules judge where pods fit.
        warnings: What was given and does not count, and what is taken for granted.
        savings_max: What any search could save per hour at most, budgets aside; None unless the search is exhaustive.
    """

    commands: tuple[PlannedCommand, ...]
    blockers: Mapping[str, tuple[str, ...]]
    well_known: frozenset[str]
    is_partial: bool = False
    in_own_words: bool = False
    warnings: tuple[str, ...] = ()
    savings_max: float | None = None

    @property
    def savings(self) -> float:
        """The savings of all commands per hour, or what takes their place where prices are not known."""
        return sum_in_order(command.savings for command in self.commands)

    @property
    def shown_savings(self) -> float | None:
        """The savings of all commands per hour; None if they are not known."""
        return self.savings if all(command.is_priced for command in self.commands) else None

    def as_dict(self) -> dict[str, Any]:
        """Return the plan in JSON's types; the commands in their order, everything else sorted by name."""
        return {
            "commands": [self._command(command) for command in self.commands],
            "blockers": {name: list(texts) for name, texts in sorted(self.blockers.items())},
            "hourly_savings": self.shown_savings,
            "monthly_savings": monthly(self.shown_savings),
            **({} if self.savings_max is None else {"hourly_savings_max": self.savings_max}),
            **warnings_json(self.warnings),
            **({"partial": True} if self.is_partial else {}),
        }

    def _command(self, command: PlannedCommand) -> dict[str, Any]:
        return {
            "reason": _wording(is_own=self.in_own_words)(removal_reason(command.reason)),
            "decision": command.decision,
            "nodes": sorted(command.nodes),
            "new_nodes": [
                {
                    **self._node(node),
                    "name": node.name,
                    "instance_type": node.node.instance_type.name,
                    "zone": node.node.offering.zone,
                    "capacity_type": node.node.offering.capacity_type,
                }
                for node in command.new
            ],
            "moves": dict(sorted(command.moves.items())),
            "held": sorted(command.held),
            "hourly_savings": command.shown_savings,
            "monthly_savings": monthly(command.shown_savings),
        }

    def _node(self, node: NodePlan) -> dict[str, Any]:
        form = node_json(node, self.well_known)
        if self.in_own_words:
            form["requirements"] = without_simulated_labels(form["requirements"], node)
        return form

    def why(self, name: str) -> dict[str, Any]:
        """Explain a node: its `outcome`, by `moves` where its pods go, and the `blockers` that keep it.

        Raises:
            FieldError: there is no such node. The message has the nearest names.
        """
        for number, command in enumerate(self.commands, 1):
            if name in command.nodes:
                saves = "" if command.shown_savings is None else f", which saves {command.shown_savings:.4f} per hour"
                outcome = f"goes with command {number}{saves}"
                moves = {pod: node for pod, node in command.moves.items() if command.sources.get(pod) == name}
                return {"node": name, "outcome": outcome, "moves": moves, "blockers": []}
        if name not in self.blockers:
            nodes = [*self.blockers, *(node for command in self.commands for node in command.nodes)]
            raise FieldError(name, f"there is no such node{nearest(name, nodes)}")
        return {"node": name, "outcome": "stays", "moves": {}, "blockers": list(self.blockers[name])}


def plan_consolidation(
    state: DisruptionState, options: ConsolidationOptions | None = None, limit: TimeLimit = UNLIMITED
) -> ConsolidationPlan:
    """Plan which nodes go, in which order, and what takes their place. The state stays as it is.

    Args:
        limit: when to end with the best commands by then; it is looked at between two simulations.

    Cost: for each command, what its search costs; and a simulation for each node that stays.
    """
    options = options or ConsolidationOptions()
    rules = Rules(options.allow_m_to_n, options.min_savings, only_launchable=True, limit=limit)
    # Simpler searches too: on later commands a better first one may lead to a worse whole.
    searches = SEARCHES[: SEARCHES.index(options.search) + 1]
    if options.ignore_budgets:
        state = state.without_budgets()
    plans = [_commands(state, simple_search, rules) for simple_search in searches]
    if options.allow_m_to_n:
        # Several nodes for several others may save less than what they keep from following, so they come last, too.
        for search in searches:
            first_commands, last = _commands(state, search, dataclasses.replace(rules, to_several=False))
            later_commands, last = _commands(last, search, rules)
            plans.append(((*first_commands, *later_commands), last))
    # Of equal plans, the one of the simplest search.
    commands, last = max(plans, key=lambda plan: sum_in_order(command.savings for command in plan[0]))
    is_bounded = options.search == "exhaustive" and all(candidate.is_priced for candidate in state.candidates)
    bound = savings_bound(state) if is_bounded else None
    worded = _wording(is_own=options.in_own_words)
    blockers = {name: tuple(map(worded, texts)) for name, texts in _blockers_in_time(last, rules).items()}
    return ConsolidationPlan(
        commands,
        blockers,
        state.basis.well_known,
        is_partial=limit.is_noticed,
        in_own_words=options.in_own_words,
        warnings=tuple(
            dict.fromkeys((*state.basis.warnings, *(text for command in commands for text in command.warnings)))
        ),
        savings_max=bound,
    )


def _wording(*, is_own: bool) -> Callable[[str], str]:
    return in_own_words if is_own else in_karpenters_words


def _commands(
    state: DisruptionState, search: Search, rules: Rules
) -> tuple[tuple[PlannedCommand, ...], DisruptionState]:
    """Return the commands in their order, and the cluster after the last of them."""
    commands: list[PlannedCommand] = []
    try:
        while not rules.limit.is_over():
            reason = EMPTY
            command = methods.emptiness(state, rules)
            if command is None:
                reason, command = UNDERUTILIZED, COMMAND_OF[search](state, rules)
            if command is None:
                break
            aftermath = after(state, command)
            commands.append(_planned_command(state, reason, command, aftermath))
            state = aftermath.state
    except TimeIsUpError:
        # What was found before is a plan as well, and is marked as partial.
        rules.limit.is_noticed = True
    rules.limit.is_noticed |= rules.limit.is_over()
    return tuple(commands), state


def _planned_command(
    state: DisruptionState, reason: DisruptionReason, command: Command, aftermath: SimulatedCluster
) -> PlannedCommand:
    return PlannedCommand(
        reason=reason,
        decision=command.decision,
        nodes=tuple(candidate.name for candidate in command.candidates),
        new=aftermath.new,
        moves=aftermath.moves,
        sources={
            pod.key: candidate.name for candidate in command.candidates for pod in state.basis.pods_on(candidate.state)
        },
        held=aftermath.held,
        savings=command.savings(state.basis.well_known),
        is_priced=command.is_priced,
        warnings=tuple(state.simulator.warnings(command.candidates, aftermath.new)),
    )


# ---------------------------------------------------------------- why nodes stay


def _blockers_in_time(state: DisruptionState, rules: Rules) -> Mapping[str, tuple[str, ...]]:
    """Return every node, with everything that keeps it; none if the time is up before all were looked at."""
    try:
        blockers = dict(rules.limit.take(_blockers(state, rules)))
    except TimeIsUpError:
        blockers = {}
    if rules.limit.is_noticed or rules.limit.is_over():
        # Reasons of half of the nodes would look as if the others were not blocked.
        rules.limit.is_noticed = True
        return {}
    return blockers


def _blockers(state: DisruptionState, rules: Rules) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield every node, with everything that keeps it."""
    candidates = {candidate.name: candidate for candidate in state.candidates}
    budgets = {reason: state.budgets(reason) for reason in (EMPTY, UNDERUTILIZED)}
    for node in state.basis.nodes:
        texts: list[str] = []
        if node.name not in state.fixed_nodes:
            texts += map(_blocker_text, state.blockers_of(node))
        candidate = candidates.get(node.name)
        if candidate is not None:
            reason = EMPTY if candidate.is_empty else UNDERUTILIZED
            texts += _unfitness(candidate)
            is_fit = not texts
            # Beside other reasons as well: a budget that is raised would not help then.
            faults = DisruptionBudgets.parse(candidate.pool.spec.disruption.budgets).errors
            if faults and not budgets[reason][candidate.pool_name]:
                texts.append(f'The budgets of NodePool "{candidate.pool_name}" cannot be read: {faults[0]}')
            elif not budgets[reason][candidate.pool_name]:
                budgets_text = f'The budgets of NodePool "{candidate.pool_name}" allow no more nodes to go'
                texts.append(
                    Reason(f"{budgets_text}: {reason}", f"{budgets_text}: {in_own_words(removal_reason(reason))}")
                )
            if is_fit and not candidate.is_empty:
                texts += _search_text(methods.alone(state, candidate, rules))
            elif is_fit:
                texts += (broken_gang.text for broken_gang in state.simulator.broken_gangs([candidate]))
        yield node.name, tuple(texts)


def _blocker_text(blocker: Blocker) -> str:
    if not blocker.detail:
        return blocker.text
    return Reason(f"{blocker.text}: {blocker.detail}", f"{in_own_words(blocker.text)}: {blocker.detail}")


def _unfitness(candidate: Candidate) -> Iterator[str]:
    """Yield everything that keeps the candidate from being considered now."""
    disruption = candidate.pool.spec.disruption
    if candidate.pool.spec.replicas is not None:
        yield f'NodePool "{candidate.pool_name}" has a fixed number of nodes'
        return
    if not candidate.is_empty:
        yield from candidate.unfitnesses()
    elif disruption.consolidate_after_s is None:
        yield candidate.disabled_text
    if disruption.consolidate_after_s is not None and not candidate.conditions.is_consolidatable:
        if true_condition(candidate.claim.status.conditions, "Initialized") is None:
            yield "Its NodeClaim is not initialized"
        else:
            yield f"Pods came or went less than {disruption.consolidate_after} ago (consolidateAfter)"


def _search_text(decision: Command | NoCommand) -> Iterator[str]:
    if isinstance(decision, Command):
        return
    yield decision.reason or "The policy Balanced finds the savings not worth the disruption"
    yield from (f"{pod}: {text}" for pod, text in sorted(decision.stranded.items()))
