"""Everything that the daemon writes to the API server: one dispatcher, and what sends through it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit

from podium.binder import ApiClient, EventRecorder
from podium.client.dispatcher import IN_FLIGHT_MAX, Dispatcher, Requester
from podium.client.observer import RequestObserver
from podium.client.rate_limit import TokenBucket
from podium.config.types import ClientConnection
from podium.daemon.status_writes import StatusWrites
from podium.lib.clock import Clock


class Writes:
    """The dispatcher of all writes, with the clients that use it.

    Args:
        limits: the rates at which writes may be sent.
        is_muted: whether no Events are recorded, because this process does not lead.
        make_client: makes the client.

    Attributes:
        client: bindings, pod status, deletes, and the reads that find out what a lost write has done.
        recorder: Events.
        statuses: status patches of pods that were not bound.
    """

    def __init__(
        self,
        session: Requester,
        limits: ClientConnection,
        clock: Clock,
        *,
        observer: RequestObserver,
        is_muted: Callable[[], bool],
        make_client: Callable[[Dispatcher, Clock], ApiClient] = ApiClient,
    ) -> None:
        self.dispatcher = Dispatcher(
            session,
            clock,
            in_flight_max=in_flight_max(),
            limiter=TokenBucket.for_client(limits.qps, limits.burst, clock),
            event_limiter=TokenBucket.for_client(limits.qps, limits.burst, clock),
            observer=observer,
        )
        self.client = make_client(self.dispatcher, clock)
        self.recorder = EventRecorder(self.dispatcher, clock, hostname=socket.gethostname(), is_muted=is_muted)
        self.statuses = StatusWrites(self.client, clock)


def in_flight_max() -> int:
    """Return the limit of writes in flight. Scarce file descriptors lower it, since each write takes a connection."""
    descriptors, _ = getrlimit(RLIMIT_NOFILE)
    return IN_FLIGHT_MAX if descriptors == RLIM_INFINITY else max(8, min(IN_FLIGHT_MAX, descriptors // 2))
