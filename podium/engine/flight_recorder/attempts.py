"""Recorded attempts as they are read: values for people, made on read."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podium.lib.transitions import Transition


class Result(enum.StrEnum):
    """The outcome of an attempt."""

    BINDING = "binding"
    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


RESULTS: Sequence[Result] = tuple(Result)
"""The results by their number in columns."""


@dataclass(frozen=True, slots=True)
class RecordedAttempt:
    """One attempt at one pod.

    Attributes:
        sequence: the number of the attempt among those that this process has decided.
        attempt: the number of the attempt at this pod.
        started_s: the start on the monotonic clock.
        decision_s: the duration of the decision.
        total_s: the duration until the pod was bound or put back; None while it is being bound.
        node: the chosen node; "" if no node fits.
        message: why the pod was not scheduled.
        node_count: the number of nodes.
        examined: the number of nodes that were examined.
        feasible: the number of these on which the pod fits.
        story: the pod's transitions in the queue, on the queue's clock.
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
    """The verdicts and scores of an attempt.

    Attributes:
        rejections: the plugin that rejected each node first, and its reasons.
        rejected_all: the plugin, with its reasons, that rejected all nodes that are not in `rejections` at PreFilter.
        totals: the total score of each node that was compared.
        plugins: the weighted scores by plugin, in the order of `totals`.
    """

    rejections: Mapping[str, tuple[str, str]]
    rejected_all: tuple[str, str] | None
    totals: Mapping[str, int]
    plugins: Mapping[str, Sequence[int]]
