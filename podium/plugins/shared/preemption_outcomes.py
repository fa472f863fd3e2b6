"""The outcomes of a preemption plan, for every plugin that preempts: the best candidate, or why nothing helps.

Never tries a node.

Source: kubernetes pkg/scheduler/framework/preemption/preemption.go, v1.36.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from podium.cluster import Snapshot
from podium.config import Extender
from podium.framework import contract as fwk
from podium.framework.cycle.diagnosis import Diagnosis
from podium.framework.cycle.extenders import narrow_by_extenders
from podium.framework.preemption.candidates import Candidate, Candidates, Importance
from podium.framework.preemption.victims import NO_VICTIMS
from podium.framework.profile.rejection import none_available
from podium.objects.core import Pod

_NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
_CLEARED: Final = fwk.PostFilterResult("")
_NO_CANDIDATE: Final = "no candidate node for preemption"


def best_of(
    candidates: Candidates,
    pod: Pod,
    snapshot: Snapshot,
    extenders: Sequence[Extender],
    importance: Importance,
    prefix: str = "",
    *,
    tells_node: bool = False,
) -> fwk.Steps[tuple[fwk.PostFilterResult | None, fwk.Status | None]]:
    """Return the best of the candidates that the extenders accept, or the status that says that there is none.

    Args:
        prefix: begins each message.
        tells_node: the success has a message, too, with the node and the number of victims.
    """
    if extenders:
        victims_by_node = {
            candidate.node_name: fwk.Victims(candidate.victims, candidate.violations) for candidate in candidates
        }
        try:
            victims_left = yield from narrow_by_extenders(extenders, pod, snapshot, victims_by_node)
        except fwk.ScheduleError as error:
            return None, fwk.error_status(f"{prefix}{error}")
        if not victims_left:
            return None, fwk.unschedulable(prefix + _NO_CANDIDATE)
        candidates = Candidates(
            [Candidate(name, victims.pods, victims.violations) for name, victims in victims_left.items()]
        )
    best = candidates.cheapest(importance)
    text = f"found a potential placement for pod on node {best.node_name}, preempting {len(best.victims)} victims"
    message = prefix + text if tells_node else ""
    return fwk.PostFilterResult(best.node_name, best.victims, message, best.violations), None


def no_help(
    snapshot: Snapshot, rejections: Mapping[int, fwk.Status], prefix: str = "", without_victims: int = 0
) -> tuple[fwk.PostFilterResult, fwk.Status]:
    """Return the result if no node helps: clear the nomination, and count the reasons of the nodes in the message.

    Args:
        rejections: why each node that was tried does not help, by row.
        without_victims: the number of nodes without pods of lower priority, whose dry run would find no victim.
    """
    if not rejections and not without_victims:
        return _CLEARED, _no_help_anywhere(len(snapshot), prefix)
    reasons = Diagnosis(single=dict(rejections)).reasons(len(rejections))
    reasons[NO_VICTIMS.message] += without_victims
    reasons[_NOT_HELPFUL] += len(snapshot) - without_victims - len(rejections)
    return _CLEARED, fwk.unschedulable(prefix + none_available(len(snapshot), reasons))


@lru_cache(maxsize=64)
def _no_help_anywhere(node_count: int, prefix: str) -> fwk.Status:
    """Return the status if evicting pods helps on no node, as for most rejected pods."""
    return fwk.unschedulable(prefix + none_available(node_count, {_NOT_HELPFUL: node_count}))
