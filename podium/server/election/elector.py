"""Takes part in the leader election: reads and writes the Lease in time, and reports the outcome.

Owns the pace (retry period, jitter, deadlines) and the election's log lines, metrics and Events. `Term` decides what an
observation means.

Source: client-go v0.37 tools/leaderelection/leaderelection.go; cmd/kube-scheduler/app/server.go, v1.36.2.
Differs: a standby retries as soon as the observed Lease runs out, not up to 2.2 retry periods later.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import Random
from types import FrameType
from typing import Literal, Protocol

import anyio

from podium.lib.clock import Clock
from podium.lib.error_text import UserFacingError
from podium.lib.log import get_logger
from podium.objects.api_errors import AlreadyExists, ApiError, Conflict, NotFound, Unauthorized, Unreachable
from podium.server.election.lease import LeaseLock
from podium.server.election.term import Term
from podium.telemetry import flush_log

log = get_logger("leaderelection")

METRICS_NAME = "kube-scheduler"
_JITTER = 1.2
_PAST_EXPIRY_S = 0.001
_RELEASE_S_MAX = 2.0
_REQUEST_S_MIN = 1.0

Tell = Callable[[str], None]
"""Records an Event about the Lease, such as "became leader"."""


class ElectionMetrics(Protocol):
    """Counts what an election does, by the name of what is led."""

    def set_leader(self, name: str, *, leads: bool) -> None:
        """Record whether this process holds the Lease."""
        ...

    def count_election_slowpath(self, name: str) -> None:
        """Count a renewal for which the leader had to read the Lease first."""
        ...


class LeadershipLostError(UserFacingError):
    """Another replica may lead by now: this process must write nothing more."""


class LeaseTakenError(UserFacingError):
    """Another program holds the Lease that this process was to lead by."""


def request_deadline_s(renew_deadline_s: float) -> float:
    """Return how long one request for the Lease may take, so that a renewal can be tried twice."""
    return max(_REQUEST_S_MIN, renew_deadline_s / 2)


class Elector:
    """Acquires, renews and releases the Lease.

    Args:
        metrics_name: what is led, as metrics name it.
        refusal: why a Lease that kube-scheduler holds is not waited for; None if it is.
    """

    def __init__(
        self,
        term: Term,
        lock: LeaseLock,
        clock: Clock,
        random: Random,
        metrics: ElectionMetrics,
        tell: Tell,
        metrics_name: str = METRICS_NAME,
        refusal: str | None = None,
    ) -> None:
        self._term = term
        self._lock = lock
        self._clock = clock
        self._random = random
        self._metrics = metrics
        self._tell = tell
        self._reported_holder = ""
        self._metrics_name = metrics_name
        self._refusal = refusal
        self._turn = anyio.Lock()
        metrics.set_leader(metrics_name, leads=False)

    async def acquire(self) -> None:
        """Wait until this process leads.

        Raises: `LeaseTakenError` if kube-scheduler holds the Lease, and that is refused.
        """
        log.info("Attempting to acquire leader lease...", lock=str(self._lock), identity=self._term.identity)
        while not await self._try():
            if self._refusal is not None and self._lock.is_held_by_kube_scheduler:
                raise LeaseTakenError(f"{self._lock} is held by {self._term.holder}: {self._refusal}")
            # With jitter, so that the standbys do not write at the same moment, of which all but one would fail.
            await anyio.sleep(self._pause_s())
        self._metrics.set_leader(self._metrics_name, leads=True)
        self._tell(f"{self._term.identity} became leader")
        log.info("Successfully acquired lease", lock=str(self._lock), identity=self._term.identity)
        if rules := self._lock.other_rules:
            log.warning("The previous leader decided as another Kubernetes", lock=str(self._lock), minor=rules)

    async def renew(self) -> None:
        """Renew the Lease until it is lost. Raises: `LeadershipLostError`."""
        term = self._term
        while True:
            # No later than the deadline, as the process must know in time that it leads no more.
            await anyio.sleep(min(term.timings.retry_period_s, max(term.left_s(), 0.0)))
            # A deadline that passed while the process or the machine was suspended has passed all the same.
            if not term.expire():
                with anyio.move_on_after(term.left_s()):
                    await self.renew_now()
            if term.expire():
                self._metrics.set_leader(self._metrics_name, leads=False)
                log.error("Leaderelection lost", lock=str(self._lock), identity=term.identity, holder=term.holder)
                raise LeadershipLostError("leaderelection lost")

    async def renew_now(self) -> bool:
        """Renew the Lease with what its metadata shall say, and return whether it is known to be written."""
        # Two writes at once would refuse each other.
        async with self._turn:
            return not self._term.expire() and await self._try()

    async def release(self) -> None:
        """Release the Lease if held, so that another replica leads at once; no write may still be under way."""
        # A Lease that may have run out may be another's by now.
        if not self._term.may_write():
            return
        self._metrics.set_leader(self._metrics_name, leads=False)
        try:
            # Shielded, because the stop of the process cancels everything else.
            with anyio.fail_after(_RELEASE_S_MAX, shield=True):
                await self._resign()
        except (ApiError, TimeoutError) as error:
            log.warning("Failed to release lease", lock=str(self._lock), error=str(error))
        self._term.give_up()

    def report_stop(self) -> None:
        """Record the Event that this process stops leading, while Events can still be written."""
        if self._term.is_holding:
            self._tell(f"{self._term.identity} stopped leading")

    def _pause_s(self) -> float:
        """Return the time until the next try: the jittered period, but no longer than the observed Lease is valid."""
        pause_s = self._term.timings.retry_period_s * (1.0 + self._random.random() * _JITTER)
        held_s = self._term.held_for_s()
        return min(pause_s, held_s + _PAST_EXPIRY_S) if held_s > 0.0 else pause_s

    async def _resign(self) -> None:
        while True:
            try:
                return await self._lock.replace(self._term.released_record())
            except Conflict:
                # Another client may have changed a label; the version that was read has to be written over.
                if (await self._lock.read()).holder != self._term.identity:
                    return None

    async def _try(self) -> bool:
        """Write the Lease for this process, if the rules allow it, and return whether it was written."""
        try:
            has_written = await self._write_optimistically() or await self._read_and_write()
        except ApiError as error:
            # The session logs that the server cannot be reached or refuses the credentials.
            tell = log.debug if isinstance(error, (Unreachable, Unauthorized)) else log.warning
            tell(_failure_to(error), lock=str(self._lock), error=str(error))
            self._term.failed()
            return False
        self._report_holder()
        return has_written

    async def _write_optimistically(self) -> bool:
        """Renew without reading the Lease first: while this process leads, no other replica should have written it."""
        if not self._term.may_write():
            return False
        try:
            await self._write("replace")
        except ApiError as error:
            log.debug("Failed to update lease optimistically, falling back to slow path", error=str(error))
            return False
        return True

    async def _read_and_write(self) -> bool:
        try:
            record = await self._lock.read()
        except NotFound:
            await self._write("create")
            return True
        if not self._term.observe(record):
            return False
        if self._term.is_holding:
            self._metrics.count_election_slowpath(self._metrics_name)
        await self._write("replace")
        return True

    async def _write(self, method: Literal["create", "replace"]) -> None:
        # Measured before the request: the server may have counted from any moment since.
        record, started_s = self._term.claim(), self._clock.monotonic()
        await (self._lock.create if method == "create" else self._lock.replace)(record)
        self._term.wrote(record, started_s)

    def _report_holder(self) -> None:
        holder = self._term.holder
        if holder != self._reported_holder:
            self._reported_holder = holder
            if holder != self._term.identity:
                log.info("New leader elected", lock=str(self._lock), holder=holder)


def _failure_to(error: ApiError) -> str:
    if isinstance(error, (Conflict, AlreadyExists)):
        return "Another process has written the lease at the same time"
    return "Error retrieving or updating the lease"


@contextmanager
def ending_if_stopped_for_too_long(term: Term) -> Iterator[None]:
    """End the process within the block when it continues after a SIGSTOP during which its lease has run out.

    At once: data that was handed to the transport is not sent yet, and no check before a write can stop it.
    """

    def on_continue(_number: int, _frame: FrameType | None) -> None:
        if term.is_holding and not term.may_write():
            # The signal may have interrupted the writing of a log line.
            with suppress(RuntimeError):
                log.error("Leaderelection lost", identity=term.identity, reason="the process was stopped for too long")
            flush_log()
            # No clean end: its writes could collide with those of the replica that leads now.
            os._exit(1)

    previous = signal.signal(signal.SIGCONT, on_continue)
    try:
        yield
    finally:
        signal.signal(signal.SIGCONT, previous)
