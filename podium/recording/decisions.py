"""Converts decisions to the form in which recordings hold them and replays compare them."""

from __future__ import annotations

from podium.engine.group_decisions import MemberDecision
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.schedule import DoesNotFit, Suggested
from podium.recording.entries import Decision


def recorded_decision(cycle: Cycle, decision: MemberDecision) -> Decision:
    """Return the recorded form of a decision."""
    pod = cycle.pod
    if isinstance(decision, Suggested):
        return Decision(
            pod.uid,
            pod.key,
            "Suggested",
            decision.node_name,
            decision.evaluated_nodes,
            decision.feasible_nodes,
            0 if cycle.scored is None else cycle.scored.chosen,
            None,
            (),
        )
    plan = decision.post_filter if isinstance(decision, DoesNotFit) else None
    node_name = None if plan is None else plan.nominated_node_name
    victims = () if plan is None else tuple(victim.key for victim in plan.victims)
    return Decision(pod.uid, pod.key, type(decision).__name__, "", 0, 0, 0, node_name, victims)
