"""The rules of the election, without a request or a wait: what was observed comes in, what may be done comes out.

Only the local clock counts, and only for how long ago something was observed: what other machines write into the Lease
is compared for change, never with our time, so no skew between clocks can make two leaders.

A leader has to have renewed within `renew_deadline_s` of the moment at which its last successful write *began*. Others
may take over `duration_s` after they saw that write, which is later: the difference of the two is what a request that
is under way at the deadline has to arrive.

Source: client-go v0.36 tools/leaderelection/leaderelection.go.
Differs: the renew deadline counts from the last success, not from the first failure after it; a leader that finds
somebody else in the Lease has lost it at once. Upstream goes on trying, and leading, for up to a retry period longer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from podium.lib.clock import Clock
from podium.lib.state_table import StateTable
from podium.objects.times import format_micro_time
from podium.service.election.lease import LeaseRecord

_STALE_AFTER_S = 20.0


class LeaseState(Enum):
    """What this process is to the Lease."""

    STANDBY = "standby"
    LEADING = "leading"
    IN_DOUBT = "in doubt"
    LOST = "lost"
    RELEASED = "released"


class LeaseEvent(Enum):
    """What has happened."""

    HELD = "found held by another"
    WRITTEN = "written as ours"
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
    """How long a lease is good for, how long its holder may fail to renew it, and how often it is tried."""

    duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0


class Term:
    """One process's part in the election.

    Args:
        clock: its monotonic reading must go on while the process or the machine is suspended.

    Invariant: `may_write` is false before anybody else may take the Lease.
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
        """Who was last seen to lead; empty for nobody."""
        return "" if self._observed is None else self._observed.holder

    @property
    def is_holding(self) -> bool:
        """Whether the Lease is ours as far as we know; `may_write` says whether that may still be relied on."""
        return self.state in _HOLDING

    def may_write(self) -> bool:
        """Whether this process leads at this very moment. Cost: below 1 us; asked before each write."""
        return self.is_holding and self.left_s() > 0.0

    def left_s(self) -> float:
        """How long the last renewal is still good for; zero or less when its deadline has passed."""
        return self._renewed_at_s + self.timings.renew_deadline_s - self._clock.monotonic()

    def held_for_s(self) -> float:
        """How long the Lease that was seen is good for if nobody renews it; negative when it has run out."""
        if self._observed is None or not self._observed.holder:
            return -1.0
        return self._observed_at_s + self._observed.duration_s - self._clock.monotonic()

    def observe(self, record: LeaseRecord) -> bool:
        """Take in what was read.

        Returns: whether the Lease may be written as ours now: it is ours, nobody's, or has not changed for its time.
        """
        if record != self._observed:
            self._observed, self._observed_at_s = record, self._clock.monotonic()
        if record.holder == self.identity:
            return True
        if self.is_holding:
            # Even a Lease that nobody holds: somebody has written it since, and we no longer know what is true.
            self._on(LeaseEvent.HELD)
            return False
        if self.held_for_s() >= 0.0:
            self._on(LeaseEvent.HELD)
            return False
        return True

    def claim(self) -> LeaseRecord:
        """The record to write: a renewal where the Lease is ours, else a change of holder."""
        now, known = format_micro_time(self._clock.now()), self._observed
        if known is None:
            return LeaseRecord(self.identity, self.timings.duration_s, now, now)
        if known.holder == self.identity:
            return replace(known, duration_s=self.timings.duration_s, renew_time=now)
        return LeaseRecord(self.identity, self.timings.duration_s, now, now, known.transitions + 1)

    def resignation(self) -> LeaseRecord:
        """The record that lets the next one take over at once."""
        assert self._observed is not None, "who holds a Lease has seen it"
        now = format_micro_time(self._clock.now())
        return LeaseRecord("", 1.0, now, now, self._observed.transitions)

    def wrote(self, record: LeaseRecord, started_s: float) -> None:
        """The server has taken our record.

        Args:
            started_s: when the write began, on the clock's monotonic reading.
        """
        self._observed, self._observed_at_s = record, self._clock.monotonic()
        self._renewed_at_s = started_s
        self._on(LeaseEvent.WRITTEN)

    def failed(self) -> None:
        """A read or write has failed, or may have."""
        self._on(LeaseEvent.FAILED)

    def expire(self) -> bool:
        """Whether a Lease held by us has to be given up because it was not renewed in time; it is lost then."""
        if self.is_holding and self.left_s() <= 0.0:
            self._on(LeaseEvent.EXPIRED)
        return self.state is LeaseState.LOST

    def give_up(self) -> None:
        """Hold it no longer, of our own will."""
        self._on(LeaseEvent.GIVEN_UP)

    def health(self) -> str | None:
        """What is wrong: we hold the Lease but have not renewed it for far too long, and still run."""
        if self.is_holding and self._clock.monotonic() - self._renewed_at_s > self.timings.duration_s + _STALE_AFTER_S:
            return "failed election to renew leadership"
        return None

    def _on(self, event: LeaseEvent) -> None:
        self.state = LEASE.next(self.state, event)
