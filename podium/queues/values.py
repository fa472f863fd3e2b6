"""Inputs of the scheduling queue, and the error of a pod that is in it already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podium.framework.contract.plugin import PreEnqueuePlugin
from podium.framework.contract.queued_pod import QueuedPodGroupInfo, QueuedPodInfo
from podium.queues.backoff import DEFAULT_BACKOFF, PodBackoff
from podium.queues.hints import HintMap
from podium.queues.states import QueueState


@dataclass(frozen=True, slots=True)
class QueueProfile:
    """The queue's view of a profile: its PreEnqueue plugins, and the event registrations of its plugins."""

    scheduler_name: str
    pre_enqueue: Sequence[PreEnqueuePlugin]
    hints: HintMap


def pre_enqueue_plugins(profiles: Sequence[QueueProfile]) -> Mapping[str, Sequence[PreEnqueuePlugin]]:
    """Return the PreEnqueue plugins of each profile by its name."""
    return {profile.scheduler_name: profile.pre_enqueue for profile in profiles}


@dataclass(frozen=True, slots=True)
class QueueTimes:
    """The pods' backoff, and the longest wait of an unschedulable pod. Units: seconds."""

    backoff: PodBackoff = DEFAULT_BACKOFF
    unschedulable_max_s: float = 300.0


DEFAULT_TIMES = QueueTimes()


_QUEUE_NAMES = {
    QueueState.ACTIVE: "the active queue",
    QueueState.BACKOFF: "the backoff queue",
    QueueState.ERROR_BACKOFF: "the backoff queue",
    QueueState.UNSCHEDULABLE: "unschedulable queue",
    QueueState.GATED: "unschedulable queue",
}


class AlreadyQueued(Exception):  # noqa: N818 - names a state of affairs, as InvalidTransition does
    """A pod or group was requeued after its attempt, but is in the queue already; its entry in the queue is kept."""

    def __init__(self, info: QueuedPodInfo, state: QueueState) -> None:
        name = f"pod group {info.pod.key}" if isinstance(info, QueuedPodGroupInfo) else f"Pod {info.key}"
        super().__init__(f"{name} is already present in {_QUEUE_NAMES[state]}")
        self.info = info
        self.state = state
