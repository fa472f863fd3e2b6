"""A pod's own PodScheduled condition beside what is known about the pod now: do they agree, and if not, why?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from podium.objects.core import Pod

_SCHEDULED: Final = "PodScheduled"
_COUNTED: Final = re.compile(r"0/(\d+) nodes are available: (.*)", re.DOTALL)
_REASON: Final = re.compile(r"(?:^|, )(\d+) (.+?)(?=, \d+ |$)", re.DOTALL)
_REASONS_SHOWN_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class ConditionReport:
    """What the condition says, and why the answer says something else.

    Attributes:
        since: when its status last changed. Later attempts may have written its message.
        differences: empty if the condition and the answer agree.
    """

    status: str
    reason: str
    message: str
    since: str
    differences: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        found: dict[str, Any] = {"status": self.status, "reason": self.reason, "message": self.message}
        return found | {"since": self.since, "differences": list(self.differences)}


def condition_report(pod: Pod, message: str, node_count: int, others: Sequence[str] = ()) -> ConditionReport | None:
    """Compare the pod's condition with an answer about it.

    Args:
        message: that of an attempt at the pod that finds no node; "" if it fits somewhere.
        node_count: how many nodes the answer is about.
        others: reasons why the answers may differ that the caller knows.

    Returns: None for a pod without the condition.
    """
    condition = pod.status.condition(_SCHEDULED)
    if condition is None:
        return None
    differences: tuple[str, ...] = ()
    if not pod.node_name and not _agree(pod, condition.reason, condition.message, message):
        changed = condition.observed_generation and pod.metadata.generation > condition.observed_generation
        of = f"the pod has changed since: it is of generation {pod.metadata.generation}, the condition is about "
        differences = (
            *others,
            *([f"{of}{condition.observed_generation}"] if changed else []),
            *_special(condition.status, condition.reason),
            *_counts(condition.message, message, node_count),
        ) or ("objects have changed since it was written, or its scheduler counts pods that it has not bound yet",)
    since = condition.last_transition_time or ""
    return ConditionReport(condition.status, condition.reason, condition.message, since, differences)


def _agree(pod: Pod, reason: str, said: str, message: str) -> bool:
    if reason == "SchedulingGated":
        return bool(pod.spec.scheduling_gates)
    return bool(message) and _head(said) == _head(message)


def _special(status: str, reason: str) -> Sequence[str]:
    if status == "True":
        return ("a scheduler has chosen a node that the pod does not name",)
    if reason == "SchedulingGated":
        return ("the gates that it names have been removed since",)
    if reason == "SchedulerError":
        return ("that attempt ended with an error, and found nothing out about nodes",)
    return ()


def _counts(said: str, message: str, node_count: int) -> Sequence[str]:
    """What it counts other than it is now."""
    before = _COUNTED.match(_head(said))
    if before is None:
        return ()
    if int(before[1]) != node_count:
        return (f"it counts {before[1]} nodes, and there are {node_count} now",)
    then = _reasons(before[2])
    after = _COUNTED.match(_head(message))
    if after is None:
        return ("nodes or pods have changed since that attempt, and no later one has written its condition",)
    now = _reasons(after[2])
    changed = [reason for reason in {**then, **now} if then.get(reason, 0) != now.get(reason, 0)]
    return tuple(
        f'it counts {then.get(reason, 0)} node(s) with "{reason}", and there are {now.get(reason, 0)} now'
        for reason in changed[:_REASONS_SHOWN_MAX]
    )


def _reasons(text: str) -> Mapping[str, int]:
    return {reason: int(count) for count, reason in _REASON.findall(text)}


def _head(message: str) -> str:
    """What a message says about nodes, without what it says about preemption."""
    return message.partition(". ")[0].rstrip(".")
