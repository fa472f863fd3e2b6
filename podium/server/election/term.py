"""The rules of leader election, without I/O or waiting: decides from observed Leases if this process may write.

Only the local clock counts, and only to measure the time since an observation: the times that other machines write into
the Lease are only checked for change, never compared with the local time, so clock skew cannot make two leaders.

A leader must have renewed within `renew_deadline_s` of the moment at which its last successful write *began*. Other
replicas may take over `duration_s` after they observed that write, which is later: a request that is in flight at the
deadline has the difference between the two to reach the server.

Source: client-go v0.36 tools/leaderelection/leaderelection.go.
Differs: the renew deadline counts from the last success, not from the first failure after it; a leader that finds
another holder in the Lease has lost it at once. Upstream keeps trying, and leading, for up to a retry period longer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from podium.lib.clock import Clock
from podium.lib.state_table import StateTable
from podium.objects.times import format_micro_time
from podium.server.election.lease import LeaseRecord

_EXPIRED_S_MAX = 20.0


class LeaseState(Enum):
    """The state of the Lease, seen from this process."""

    STANDBY = "standby"
    LEADING = "leading"
    IN_DOUBT = "in doubt"
    LOST = "lost"
    RELEASED = "released"


class LeaseEvent(Enum):
    """An event that moves the Lease from one state to another."""

    HELD = "found held by another"
    WRITTEN = "written by this process"
    FAILED = "not read or not written"
    EXPIRED = "renew deadline passed"
    GIVEN_UP = "given up"


_S, _E = LeaseState, LeaseEvent

LEASE = StateTable(
    "leader lease",
    {
        (_S.STANDBY, _E.HELD): _S.STANDBY,
        (_S.STANDBY, _E.FAILED): _S.STANDBY,
        (_S.STANDBY, _E.WRITTEN): _S.LEADING,
        (_S.LEADING, _E.WRITTEN): _S.LEADING,
        (_S.LEADING, _E.FAILED): _S.IN_DOUBT,
        (_S.LEADING, _E.HELD): _S.LOST,
        (_S.LEADING, _E.EXPIRED): _S.LOST,
        (_S.LEADING, _E.GIVEN_UP): _S.RELEASED,
        (_S.IN_DOUBT, _E.WRITTEN): _S.LEADING,
        (_S.IN_DOUBT, _E.FAILED): _S.IN_DOUBT,
        (_S.IN_DOUBT, _E.HELD): _S.LOST,
        (_S.IN_DOUBT, _E.EXPIRED): _S.LOST,
        (_S.IN_DOUBT, _E.GIVEN_UP): _S.RELEASED,
    },
)

_HOLDING_STATES = frozenset({LeaseState.LEADING, LeaseState.IN_DOUBT})


@dataclass(frozen=True, slots=True)
class Timings:
    """The lease duration, renew deadline and retry period of leader election, in seconds."""

    duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0


class Term:
    """The state of one process in leader election.

    Args:
        clock: its monotonic reading must go on advancing while the process or the machine is suspended.

    Invariant: `may_write` turns false before any other replica may take the Lease.
    """

    def __init__(self, identity: str, timings: Timings, clock: Clock) -> None:
        self.identity = identity
        self.timings = timings
        self.state = LeaseState.STANDBY
        self._clock = clock
        self._observed: LeaseRecord | None = None
        self._observed_at_s = 0.0
        self._renewed_at_s = 0.0

    @property
    def holder(self) -> str:
        """The holder last observed; "" if no holder was observed."""
        return "" if self._observed is None else self._observed.holder

    @property
    def is_holding(self) -> bool:
        """Return True if this process held the Lease when last observed; `may_write` says whether it still does."""
        return self.state in _HOLDING_STATES

    def may_write(self) -> bool:
        """Return whether this process is the leader at this moment. Cost: below 1 us; checked before each write."""
        return self.is_holding and self.left_s() > 0.0

    def left_s(self) -> float:
        """Return the time until the renew deadline; zero or less after it."""
        return self._renewed_at_s + self.timings.renew_deadline_s - self._clock.monotonic()

    def held_for_s(self) -> float:
        """Return the time until the observed Lease expires unless renewed; negative if expired or without a holder."""
        if self._observed is None or not self._observed.holder:
            return -1.0
        return self._observed_at_s + self._observed.duration_s - self._clock.monotonic()

    def observe(self, record: LeaseRecord) -> bool:
        """Process a record that was read from the Lease.

        Returns: True if this process may write the Lease: it holds it, or the Lease has no holder or has expired.
        """
        if record != self._observed:
            # Its duration counts from this observation: its renew time is from another machine's clock.
            self._observed, self._observed_at_s = record, self._clock.monotonic()
        if record.holder == self.identity:
            return True
        if self.is_holding:
            # Even if the Lease has no holder now: another replica has written it since, and may have led meanwhile.
            self._on(LeaseEvent.HELD)
            return False
        if self.held_for_s() >= 0.0:
            self._on(LeaseEvent.HELD)
            return False
        return True

    def claim(self) -> LeaseRecord:
        """Return the record to write: a renewal if this process holds the Lease, else a change of holder."""
        current_time, record = format_micro_time(self._clock.now()), self._observed
        if record is None:
            return LeaseRecord(self.identity, self.timings.duration_s, current_time, current_time)
        if record.holder == self.identity:
            # As in client-go, a renewal keeps the time of acquisition and the number of transitions.
            return replace(record, duration_s=self.timings.duration_s, renew_time=current_time)
        return LeaseRecord(self.identity, self.timings.duration_s, current_time, current_time, record.transitions + 1)

    def released_record(self) -> LeaseRecord:
        """Return the record that lets another replica take over at once."""
        assert self._observed is not None, "the holder of a Lease has observed it"
        current_time = format_micro_time(self._clock.now())
        # client-go writes a duration of one second on release, too: zero would not pass the API's validation.
        return LeaseRecord("", 1.0, current_time, current_time, self._observed.transitions)

    def wrote(self, record: LeaseRecord, started_s: float) -> None:
        """Record that the server has accepted a write of this record.

        Args:
            started_s: the clock's monotonic reading when the write began.
        """
        self._observed, self._observed_at_s = record, self._clock.monotonic()
        self._renewed_at_s = started_s
        self._on(LeaseEvent.WRITTEN)

    def failed(self) -> None:
        """Record that a read or write of the Lease failed or has an unknown outcome."""
        self._on(LeaseEvent.FAILED)

    def expire(self) -> bool:
        """Mark the Lease as lost once its renew deadline has passed, and return True if it is lost."""
        if self.is_holding and self.left_s() <= 0.0:
            self._on(LeaseEvent.EXPIRED)
        return self.state is LeaseState.LOST

    def give_up(self) -> None:
        """Release the Lease voluntarily."""
        self._on(LeaseEvent.GIVEN_UP)

    def health(self) -> str | None:
        """Return an error if this process holds a Lease that expired long ago, or else None."""
        # As upstream: a leader that has neither renewed its Lease nor stopped by then hangs and should be restarted.
        if self.is_holding and self._clock.monotonic() - self._renewed_at_s > self.timings.duration_s + _EXPIRED_S_MAX:
            return "failed election to renew leadership"
        return None

    def _on(self, event: LeaseEvent) -> None:
        self.state = LEASE.next(self.state, event)
