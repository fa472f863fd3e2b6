"""A pod in the scheduling queue, with its state between attempts.

Source: kubernetes pkg/scheduler/framework/types.go (QueuedPodInfo), v1.36.2 and v1.37.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.lib.transitions import Transitions
from podium.objects.core import Pod


@dataclass(slots=True, eq=False)
class QueuedPodInfo:
    """A waiting pod. Only the queue and the failure handling change it.

    Units: times are in seconds on the queue's clock, which starts at the wall clock's time and is never set.
    """

    pod: Pod
    timestamp_s: float
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors_count: int = 0
    backoff_expiration_s: float = 0.0
    was_flushed_from_unschedulable: bool = False
    flush_timestamp_s: float = 0.0
    """When it was last retried because it had waited very long without an event; 0 if not since its last attempt."""
    initial_attempt_timestamp_s: float | None = None
    schedulable_since_s: float | None = None
    """When it was last admitted to the queue after it was added, gated or rejected; None if it waits for an event."""
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    gating_plugin: str = ""
    gate_reason: str = ""
    """The message of the PreEnqueue plugin that gates the pod or failed to decide."""
    last_failure: str = ""
    """Why the last attempt did not schedule it."""
    last_details: str = ""
    has_failed_at_gate: bool = False
    """Whether a PreEnqueue plugin failed, so that it is called again after the pod's backoff."""
    transitions: Transitions = field(default_factory=Transitions)

    def exclude(self, seconds: float) -> None:
        """Do not count so many of the seconds since it has been schedulable."""
        if self.schedulable_since_s is not None:
            self.schedulable_since_s += seconds

    @property
    def key(self) -> str:
        """`<namespace>/<name>`."""
        return self.pod.key

    @property
    def is_gated(self) -> bool:
        """A PreEnqueue plugin keeps the pod out of the active queue."""
        return self.gating_plugin != ""

    @property
    def rejector_plugins(self) -> set[str]:
        """Every plugin that contributed to the pod not being scheduled."""
        return self.unschedulable_plugins | self.pending_plugins
