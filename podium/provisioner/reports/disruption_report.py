"""The form of Karpenter's recorded answers about disruption.

Owns the form. Everything in it is found elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from podium.provisioner.apis.budgets import DisruptionReason
from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.cloudprovider.catalogue import Catalogue
from podium.provisioner.disruption import methods
from podium.provisioner.disruption.conditions import ClaimConditions
from podium.provisioner.disruption.consolidation import Command, NoCommand
from podium.provisioner.disruption.disruption_state import DisruptionState
from podium.provisioner.provisioning.plan import existing_json, node_claim_json
from podium.provisioner.state.settings import Settings

NO_OP: Final[Mapping[str, Any]] = {"decision": "no-op"}

_REASONS: Final[tuple[DisruptionReason, ...]] = ("Drifted", "Empty", "Underutilized")


def plan_disruption(objects: ClusterObjects, catalogue: Catalogue, settings: Settings, now_s: float) -> dict[str, Any]:
    """Plan what each method would do if it were its turn, and explain why nodes stay.

    Returns: `conditions`, `budgets`, `blocked`, `unfit`, `candidates`, `nodes` and `methods`.

    Args:
        now_s: the time, in seconds since the epoch.

    Raises:
        FieldError: an object has a value that has no meaning.
    """
    state = DisruptionState.of(objects, catalogue, settings, now_s)
    budgets = {reason: state.budgets(reason) for reason in _REASONS}
    candidates = methods.in_turn(state.consolidatable)
    return {
        "conditions": {
            name: document for name, conditions in state.conditions.items() if (document := _condition(conditions))
        },
        "budgets": {pool: {reason: budgets[reason][pool] for reason in _REASONS} for pool in budgets["Empty"]},
        "blocked": {name: blockers[0].text for name, blockers in state.blockers().items()},
        "unfit": {
            candidate.name: candidate.unfitness for candidate in state.candidates if candidate.unfitness is not None
        },
        "candidates": [
            {"node": candidate.name, "price": candidate.price, "cost": candidate.cost} for candidate in candidates
        ],
        # Without budgets: the recorded answers ask each candidate by itself.
        "nodes": {candidate.name: _node(state, methods.alone(state, candidate)) for candidate in candidates},
        "methods": _methods(state, state.later(methods.VALIDATED_AFTER_S)),
    }


def _condition(conditions: ClaimConditions) -> dict[str, Any]:
    document: dict[str, Any] = {"consolidatable": True} if conditions.is_consolidatable else {}
    return {**document, "drifted": conditions.drifted} if conditions.drifted else document


def _node(state: DisruptionState, decision: Command | NoCommand) -> dict[str, Any]:
    if isinstance(decision, NoCommand):
        return {**NO_OP, "reason": decision.reason, "unschedulable": dict(decision.stranded)}
    document = _command(state, decision)
    return {key: document[key] for key in ("decision", "replacements", "savings")}


def _methods(state: DisruptionState, later: DisruptionState) -> dict[str, Any]:
    emptiness = methods.emptiness(state)
    document = {"emptiness": _emptiness(state, later, emptiness) if emptiness is not None else NO_OP}
    command = methods.drift(state)
    document["drift"] = _command(state, command) if command is not None else NO_OP
    for name, method in (("multi", methods.multi_node), ("single", methods.single_node)):
        command = method(state)
        document[name] = NO_OP
        if command is not None:
            document[name] = {**_command(state, command), "validation": methods.consolidation_fault(later, command)}
    return document


def _emptiness(state: DisruptionState, later: DisruptionState, command: Command) -> dict[str, Any]:
    document = _command(state, command)
    candidates = methods.still_empty(later, command)
    if isinstance(candidates, str):
        return {**document, "validation": candidates}
    if len(candidates) < len(command.candidates):
        document["valid"] = [candidate.name for candidate in candidates]
    return document


def _command(state: DisruptionState, command: Command) -> dict[str, Any]:
    well_known = state.basis.well_known
    document: dict[str, Any] = {
        "decision": command.decision,
        "nodes": [candidate.name for candidate in command.candidates],
        "replacements": [node_claim_json(node) for node in command.replacements],
        "savings": command.savings(well_known),
    }
    if command.simulation is not None:
        plan = command.simulation.plan
        document.update(existing=existing_json(plan), errors=plan.reasons)
    return document
