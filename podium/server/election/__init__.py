"""Leader election on a Lease: decides which of several replicas schedules.

Owns the election: its rules, its requests, and the answer to "may this process still write?". Never schedules.
"""

from podium.server.election.elector import (
    Elector,
    LeadershipLostError,
    LeaseTakenError,
    ending_if_stopped_for_too_long,
    request_deadline_s,
)
from podium.server.election.lease import LeaseLock, LeaseRecord, is_held_by_kube_scheduler
from podium.server.election.term import LEASE, LeaseEvent, LeaseState, Term, Timings

__all__ = [
    "LEASE",
    "Elector",
    "LeadershipLostError",
    "LeaseEvent",
    "LeaseLock",
    "LeaseRecord",
    "LeaseState",
    "LeaseTakenError",
    "Term",
    "Timings",
    "ending_if_stopped_for_too_long",
    "is_held_by_kube_scheduler",
    "request_deadline_s",
]
