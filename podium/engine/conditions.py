"""Compares a pod's PodScheduled condition with an answer about the pod now, and explains the differences."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from podium.lib.plurals import count_of
from podium.objects.core import Pod

_SCHEDULED: Final = "PodScheduled"
_COUNTED: Final = re.compile(r"0/(\d+) nodes are available: (.*)", re.DOTALL)
_REASON: Final = re.compile(r"(?:^|, )(\d+) (.+?)(?=, \d+ |$)", re.DOTALL)
_REASONS_SHOWN_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class ConditionReport:
    """The condition, and the reasons why the answer differs.

    Attributes:
        since: when the condition's status last changed. Later attempts may have written its message.
        differences: empty if the condition and the answer agree.
    """

    status: str
    reason: str
    message: str
    since: str
    differences: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        answer: dict[str, Any] = {"status": self.status, "reason": self.reason, "message": self.message}
        return answer | {"since": self.since, "differences": list(self.differences)}


def condition_report(
    pod: Pod, message: str, node_count: int, known_reasons: Sequence[str] = ()
) -> ConditionReport | None:
    """Compare the pod's condition with an answer about it.

    Args:
        message: that of an attempt at the pod that finds no node; "" if it fits somewhere.
        node_count: how many nodes the answer is about.
        known_reasons: reasons for a difference that the caller knows.

    Returns: None for a pod without the condition.
    """
    condition = pod.status.condition(_SCHEDULED)
    if condition is None:
        return None
    differences: tuple[str, ...] = ()
    if not pod.node_name and not _agree(pod, condition.reason, condition.message, message):
        has_changed = condition.observed_generation and pod.metadata.generation > condition.observed_generation
        generation_text = (
            f"the pod has changed since: it is of generation {pod.metadata.generation}, the condition is about "
        )
        differences = (
            *known_reasons,
            *([f"{generation_text}{condition.observed_generation}"] if has_changed else []),
            *_special(condition.status, condition.reason),
            *_counts(condition.message, message, node_count),
        ) or ("objects have changed since it was written, or its scheduler counts pods that it has not bound yet",)
    transition_time = condition.last_transition_time or ""
    return ConditionReport(condition.status, condition.reason, condition.message, transition_time, differences)


def _agree(pod: Pod, reason: str, condition_message: str, message: str) -> bool:
    if reason == "SchedulingGated":
        return bool(pod.spec.scheduling_gates)
    return bool(message) and _head(condition_message) == _head(message)


def _special(status: str, reason: str) -> Sequence[str]:
    if status == "True":
        return ("a scheduler has chosen a node that the pod does not name",)
    if reason == "SchedulingGated":
        return ("the gates that it names have been removed since",)
    if reason == "SchedulerError":
        return ("that attempt ended with an error, and found nothing out about nodes",)
    return ()


def _counts(condition_message: str, message: str, node_count: int) -> Sequence[str]:
    """Return the differences between the nodes that the condition counts and those of the answer."""
    condition_match = _COUNTED.match(_head(condition_message))
    if condition_match is None:
        return ()
    if int(condition_match[1]) != node_count:
        return (f"it counts {condition_match[1]} nodes, and there are {node_count} now",)
    old = _reasons(condition_match[2])
    answer_match = _COUNTED.match(_head(message))
    if answer_match is None:
        return ("nodes or pods have changed since that attempt, and no later one has written its condition",)
    new = _reasons(answer_match[2])
    differences = [reason for reason in {**old, **new} if old.get(reason, 0) != new.get(reason, 0)]
    return tuple(
        f'it counts {count_of(old.get(reason, 0), "node")} with "{reason}", and there are {new.get(reason, 0)} now'
        for reason in differences[:_REASONS_SHOWN_MAX]
    )


def _reasons(text: str) -> Mapping[str, int]:
    return {reason: int(count) for count, reason in _REASON.findall(text)}


def _head(message: str) -> str:
    """Return the part of a message about nodes, without the part about preemption."""
    return message.partition(". ")[0].rstrip(".")
