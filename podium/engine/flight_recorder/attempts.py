"""Recorded attempts as they are read: values for people, made when somebody asks."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podium.lib.transitions import Transition


class Result(enum.StrEnum):
    """What became of an attempt."""

    BINDING = "binding"
    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


RESULTS: Sequence[Result] = tuple(Result)
"""By the number that stands for each in a column."""


@dataclass(frozen=True, slots=True)
class RecordedAttempt:
    """One attempt at one pod.

    Attributes:
        sequence: grows with each attempt that this process has decided.
        attempt: the number of the attempt at this pod.
        started_s: on the monotonic clock.
        decision_s: how long the decision took.
        total_s: until the pod was bound or put back; None while it is being bound.
        node: the node that was chosen; "" if none fits.
        message: why it was not scheduled.
        node_count: how many nodes there were.
        examined: how many of them were looked at.
        feasible: on how many of these the pod fits.
        story: how the pod came through the queue; on the queue's clock.
    """

    sequence: int
    namespace: str
    name: str
    uid: str
    profile: str
    attempt: int
    started_s: float
    decision_s: float
    total_s: float | None
    result: Result
    node: str
    message: str
    node_count: int
    examined: int
    feasible: int
    story: Sequence[Transition]


@dataclass(frozen=True, slots=True)
class Details:
    """What an attempt found out about nodes.

    Attributes:
        rejected: the plugin that rejected each node first, and its reasons.
        rejected_all: the same if PreFilter rejected the pod on every node that is not in `rejected`.
        totals: the total score of each node that was compared.
        plugins: the weighted scores behind it by plugin, in the order of `totals`.
    """

    rejected: Mapping[str, tuple[str, str]]
    rejected_all: tuple[str, str] | None
    totals: Mapping[str, int]
    plugins: Mapping[str, Sequence[int]]
