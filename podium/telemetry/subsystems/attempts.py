"""Attempts to schedule pods, and how long pods took until they were bound."""

from __future__ import annotations

from typing import Literal

from podium.objects.core import Pod
from podium.telemetry.families import (
    ATTEMPT_S,
    EXEMPLAR_LENGTH_MAX,
    Exemplar,
    counter,
    exemplar_histogram,
    exponential,
    histogram,
)

AttemptResult = Literal["scheduled", "unschedulable", "error"]
_ATTEMPTS_SHOWN_MAX = 14
_ATTEMPT_LABELS = (*((str(n),) for n in range(_ATTEMPTS_SHOWN_MAX + 1)), (f"{_ATTEMPTS_SHOWN_MAX + 1}+",))


def pod_exemplar(pod: Pod) -> Exemplar:
    """Return the labels that lead to a pod: by its name, or if that is too long, by its uid alone."""
    labels = (("namespace", pod.metadata.namespace), ("pod", pod.metadata.name), ("uid", pod.uid))
    is_short = sum(len(name) + len(value) for name, value in labels) <= EXEMPLAR_LENGTH_MAX
    return labels if is_short else labels[-1:]


class AttemptMetrics:
    """Attempts to schedule pods, and how long pods took until they were bound."""

    def __init__(self) -> None:
        self._attempts = counter("scheduler_schedule_attempts_total", "Attempts to schedule pods.", "result", "profile")
        self._attempt_s = histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Time of an attempt, until the pod was bound or its failure was handled.",
            ATTEMPT_S,
            "result",
            "profile",
        )
        self._algorithm_s = histogram(
            "scheduler_scheduling_algorithm_duration_seconds", "Time to choose a node.", ATTEMPT_S
        )
        self._sli_s = histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Time from a pod's first entry into the active queue until it is bound.",
            exponential(0.01, 2, 20),
            "attempts",
        )
        self._latency_s = exemplar_histogram(
            "podium_pod_scheduling_latency_seconds",
            "Time that a schedulable pod took until it was bound, without waits at Permit, PreBind and PostBind.",
            exponential(0.0025, 2, 15),
            pod_exemplar,
        )
        self._pod_attempts = histogram(
            "scheduler_pod_scheduling_attempts", "Attempts that a pod took until it was bound.", exponential(1, 2, 5)
        )
        self._after_flush = counter(
            "scheduler_pod_scheduled_after_flush_total",
            "Pods that were bound after the periodic flush, not an event, had requeued them.",
        )
        super().__init__()

    def count_attempt(self, result: AttemptResult, profile: str, seconds: float) -> None:
        """Count an attempt that has ended: its pod was bound, or its failure was handled."""
        self._attempts[result, profile].value += 1.0
        self._attempt_s[result, profile].observe(seconds)

    def observe_algorithm(self, seconds: float) -> None:
        """Record a scheduling cycle that has ended, with or without a feasible node."""
        self._algorithm_s[()].observe(seconds)

    def count_bound(self, attempts: int, seconds: float, *, after_flush: bool = False) -> None:
        """Count a bound pod.

        Args:
            attempts: how many attempts it took, from 1.
            seconds: since the pod first entered the active queue.
            after_flush: whether the periodic flush, not an event, requeued the pod.
        """
        self._sli_s[_ATTEMPT_LABELS[min(attempts, _ATTEMPTS_SHOWN_MAX + 1)]].observe(seconds)
        self._pod_attempts[()].observe(attempts)
        if after_flush:
            self._after_flush[()].add()

    def observe_latency(self, seconds: float, pod: Pod) -> None:
        """Record how many seconds after becoming schedulable a pod was bound: the objective of docs/monitoring.md."""
        self._latency_s[()].observe_of(seconds, pod)
