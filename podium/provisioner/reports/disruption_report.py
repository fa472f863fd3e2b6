"""What Karpenter would disrupt in a cluster now, as it is told: the form of its recorded answers.

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


def plan_disruption(objects: ClusterObjects, catalogue: Catalogue, settings: Settings, now: float) -> dict[str, Any]:
    """What each method would do if it were its turn, and why nodes stay.

    Returns: `conditions`, `budgets`, `blocked`, `unfit`, `candidates`, `nodes` and `methods`.

    Args:
        now: the time, in seconds since the epoch.

    Raises:
        FieldError: an object has a value that has no meaning.
    """
    state = DisruptionState.of(objects, catalogue, settings, now)
    budgets = {reason: state.budgets(reason) for reason in _REASONS}
    candidates = methods.in_turn(state.consolidatable)
    return {
        "conditions": {name: told for name, each in state.conditions.items() if (told := _condition(each))},
        "budgets": {pool: {reason: budgets[reason][pool] for reason in _REASONS} for pool in budgets["Empty"]},
        "blocked": {name: blockers[0].text for name, blockers in state.blockers().items()},
        "unfit": {each.name: each.unfitness for each in state.candidates if each.unfitness is not None},
        "candidates": [{"node": each.name, "price": each.price, "cost": each.cost} for each in candidates],
        "nodes": {each.name: _node(state, methods.alone(state, each)) for each in candidates},
        "methods": _methods(state, state.later(methods.VALIDATED_AFTER_S)),
    }


def _condition(conditions: ClaimConditions) -> dict[str, Any]:
    told: dict[str, Any] = {"consolidatable": True} if conditions.is_consolidatable else {}
    return {**told, "drifted": conditions.drifted} if conditions.drifted else told


def _node(state: DisruptionState, found: Command | NoCommand) -> dict[str, Any]:
    if isinstance(found, NoCommand):
        return {**NO_OP, "reason": found.reason, "unschedulable": dict(found.stranded)}
    told = _command(state, found)
    return {key: told[key] for key in ("decision", "replacements", "savings")}


def _methods(state: DisruptionState, later: DisruptionState) -> dict[str, Any]:
    emptiness = methods.emptiness(state)
    told = {"emptiness": _emptiness(state, later, emptiness) if emptiness is not None else NO_OP}
    found = methods.drift(state)
    told["drift"] = _command(state, found) if found is not None else NO_OP
    for name, method in (("multi", methods.multi_node), ("single", methods.single_node)):
        found = method(state)
        told[name] = NO_OP
        if found is not None:
            told[name] = {**_command(state, found), "validation": methods.consolidation_fault(later, found)}
    return told


def _emptiness(state: DisruptionState, later: DisruptionState, command: Command) -> dict[str, Any]:
    told = _command(state, command)
    left = methods.still_empty(later, command)
    if isinstance(left, str):
        return {**told, "validation": left}
    if len(left) < len(command.candidates):
        told["valid"] = [each.name for each in left]
    return told


def _command(state: DisruptionState, command: Command) -> dict[str, Any]:
    well_known = state.basis.well_known
    told: dict[str, Any] = {
        "decision": command.decision,
        "nodes": [each.name for each in command.candidates],
        "replacements": [node_claim_json(node) for node in command.replacements],
        "savings": command.savings(well_known),
    }
    if command.simulation is not None:
        plan = command.simulation.plan
        told.update(existing=existing_json(plan), errors=plan.reasons)
    return told
