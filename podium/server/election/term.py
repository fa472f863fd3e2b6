"""The rules of the election, without I/O or waiting: observations come in, permissions to write come out.

Only the local clock counts, and only to measure how long ago something was observed: the times that other machines
write into the Lease are compared for change, never with the local time, so clock skew cannot make two leaders.

A leader must have renewed within `renew_deadline_s` of the moment at which its last successful write *began*. Other
replicas may take over `duration_s` after they observed that write, which is later: a request that is under way at the
deadline has the difference of the two to arrive.

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

_STALE_AFTER_S = 20.0


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

_HOLDING = frozenset({LeaseState.LEADING, LeaseState.IN_DOUBT})


@dataclass(frozen=True, slots=True)
class Timings:
    """The validity of a lease, the time for which its holder may fail to renew it, and the period of its retries."""

    duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0


class Term:
    """One process's part in the election.

    Args:
        clock: its monotonic reading must continue while the process or the machine is suspended.

    Invariant: `may_write` is false before another replica may take the Lease.
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
        """Return whether this process held the Lease when last observed; `may_write` says if it still does."""
        return self.state in _HOLDING

    def may_write(self) -> bool:
        """Return whether this process is the leader at this moment. Cost: below 1 us; checked before each write."""
        return self.is_holding and self.left_s() > 0.0

    def left_s(self) -> float:
        """Return how long the last renewal is still valid; zero or less after its deadline."""
        return self._renewed_at_s + self.timings.renew_deadline_s - self._clock.monotonic()

    def held_for_s(self) -> float:
        """Return how long the observed Lease is valid if it is not renewed; negative if it has run out."""
        if self._observed is None or not self._observed.holder:
            return -1.0
        return self._observed_at_s + self._observed.duration_s - self._clock.monotonic()

    def observe(self, record: LeaseRecord) -> bool:
        """Take in a record that was read.

        Returns: whether this process may write the Lease: it holds it, or the Lease has no holder or has run out.
        """
        if record != self._observed:
            # From here on the Lease is valid for its duration: by whose clock it was renewed is unknown.
            self._observed, self._observed_at_s = record, self._clock.monotonic()
        if record.holder == self.identity:
            return True
        if self.is_holding:
            # Also if the Lease has no holder now: another replica has written it since, so its history is unknown.
            self._on(LeaseEvent.HELD)
            return False
        if self.held_for_s() >= 0.0:
            self._on(LeaseEvent.HELD)
            return False
        return True

    def claim(self) -> LeaseRecord:
        """Return the record to write: a renewal if this process holds the Lease, else a change of holder."""
        time, record = format_micro_time(self._clock.now()), self._observed
        if record is None:
            return LeaseRecord(self.identity, self.timings.duration_s, time, time)
        if record.holder == self.identity:
            # As client-go: a renewal keeps the time of acquisition and the number of transitions.
            return replace(record, duration_s=self.timings.duration_s, renew_time=time)
        return LeaseRecord(self.identity, self.timings.duration_s, time, time, record.transitions + 1)

    def released_record(self) -> LeaseRecord:
        """Return the record that lets another replica take over at once."""
        assert self._observed is not None, "the holder of a Lease has observed it"
        time = format_micro_time(self._clock.now())
        # client-go writes a duration of one second on release, too: zero would not pass the API's validation.
        return LeaseRecord("", 1.0, time, time, self._observed.transitions)

    def wrote(self, record: LeaseRecord, started_s: float) -> None:
        """Keep the record, which the server has accepted.

        Args:
            started_s: when the write began, on the clock's monotonic reading.
        """
        self._observed, self._observed_at_s = record, self._clock.monotonic()
        self._renewed_at_s = started_s
        self._on(LeaseEvent.WRITTEN)

    def failed(self) -> None:
        """Note a read or write that failed or whose outcome is unknown."""
        self._on(LeaseEvent.FAILED)

    def expire(self) -> bool:
        """Give up the Lease if it was not renewed in time, and return whether it is lost."""
        if self.is_holding and self.left_s() <= 0.0:
            self._on(LeaseEvent.EXPIRED)
        return self.state is LeaseState.LOST

    def give_up(self) -> None:
        """Release the Lease voluntarily."""
        self._on(LeaseEvent.GIVEN_UP)

    def health(self) -> str | None:
        """Return the problem, if any: the process holds a Lease that it has not renewed for far too long."""
        # Upstream's health adaptor: beyond the deadline and a grace, the process hangs and should be restarted.
        if self.is_holding and self._clock.monotonic() - self._renewed_at_s > self.timings.duration_s + _STALE_AFTER_S:
            return "failed election to renew leadership"
        return None

    def _on(self, event: LeaseEvent) -> None:
        self.state = LEASE.next(self.state, event)
