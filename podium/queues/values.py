"""Inputs of the scheduling queue, and its statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podium.framework.contract.plugin import PreEnqueuePlugin
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.queues.backoff import DEFAULT_BACKOFF, PodBackoff
from podium.queues.hints import HintMap
from podium.queues.states import QueueState


@dataclass(frozen=True, slots=True)
class QueueProfile:
    """The queue's view of a profile: its PreEnqueue plugins, and the event registrations of its plugins."""

    scheduler_name: str
    pre_enqueue: Sequence[PreEnqueuePlugin]
    hints: HintMap


@dataclass(frozen=True, slots=True)
class QueueTimes:
    """The pods' backoff, and the longest wait of an unschedulable pod. Units: seconds."""

    backoff: PodBackoff = DEFAULT_BACKOFF
    unschedulable_max_s: float = 300.0


DEFAULT_TIMES = QueueTimes()


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """The number of pods in each state; `pending_pods` counts both backoff queues as one."""

    active: int
    backoff: int
    error_backoff: int
    unschedulable: int
    gated: int
    in_flight: int
    in_flight_events: int

    @property
    def pending_pods(self) -> Mapping[str, int]:
        """The number of pods by the values of the metric's `queue` label."""
        return {
            "active": self.active,
            "backoff": self.backoff + self.error_backoff,
            "unschedulable": self.unschedulable,
            "gated": self.gated,
        }


_QUEUE_NAMES = {
    QueueState.ACTIVE: "the active queue",
    QueueState.BACKOFF: "the backoff queue",
    QueueState.ERROR_BACKOFF: "the backoff queue",
    QueueState.UNSCHEDULABLE: "unschedulable queue",
    QueueState.GATED: "unschedulable queue",
}


class AlreadyQueued(Exception):  # noqa: N818 - names a state of affairs, as InvalidTransition does
    """A pod was requeued after its attempt, but is in the queue already; its entry in the queue is kept."""

    def __init__(self, info: QueuedPodInfo, state: QueueState) -> None:
        super().__init__(f"Pod {info.key} is already present in {_QUEUE_NAMES[state]}")
        self.info = info
        self.state = state
