"""Decisions as recordings note them and replays compare them."""

from __future__ import annotations

from podium.engine.pod_group_cycle import MemberDecision
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.schedule import DoesNotFit, Suggested
from podium.recording import tape


def decided(cycle: Cycle, decision: MemberDecision) -> tape.Decided:
    """The decision as it is noted."""
    pod = cycle.pod
    if isinstance(decision, Suggested):
        return tape.Decided(
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
    nominated = None if plan is None else plan.nominated_node_name
    victims = () if plan is None else tuple(each.key for each in plan.victims)
    return tape.Decided(pod.uid, pod.key, type(decision).__name__, "", 0, 0, 0, nominated, victims)
