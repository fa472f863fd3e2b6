"""What servers tell of themselves over HTTPS: whether they are ready, and their metrics."""

from __future__ import annotations

import http.client
import math
import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from prometheus_client.parser import text_fd_to_metric_families

from tests.control_plane.credentials import ADMIN_TOKEN
from tests.control_plane.servers import ControlPlane, Scheduler

ATTEMPT: Final = "scheduler_scheduling_attempt_duration_seconds"
"""From the queue to the end of the binding cycle."""
ALGORITHM: Final = "scheduler_scheduling_algorithm_duration_seconds"
"""The decision alone."""
LOOP_STALL: Final = "podium_loop_stall_seconds"
API_REQUEST: Final = "apiserver_request_duration_seconds"
"""The API server's own, from a request's headers to the end of its answer."""
BINDING: Final = {"verb": "POST", "resource": "pods", "subresource": "binding"}
"""Its labels of bindings."""
STALL_S: Final = 0.05
"""How late podium's event loop may be at most."""

_HEADERS = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
_READY_S_MAX = 300.0
_POLL_S = 0.02
_TIMEOUT_S = 10.0


class NotReadyError(Exception):
    """The scheduler ended, or did not get ready in time."""


def get(server: Scheduler | ControlPlane, path: str) -> str:
    """The body."""
    connection = _connection(server)
    try:
        connection.request("GET", path, headers=_HEADERS)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def wait_ready(scheduler: Scheduler) -> None:
    """Poll /readyz until all informers have synced. Raises: NotReadyError."""
    process = scheduler.process
    deadline_s = time.monotonic() + _READY_S_MAX
    connection = _connection(scheduler)
    try:
        while not _is_ready(connection):
            if not process.is_running or time.monotonic() > deadline_s:
                raise NotReadyError(f"{process.name} is not ready:\n{process.log_tail()}")
            time.sleep(_POLL_S)
    finally:
        connection.close()


def _connection(server: Scheduler | ControlPlane) -> http.client.HTTPSConnection:
    # The certificate is self-signed, in memory, and of no interest.
    context = ssl._create_unverified_context()
    return http.client.HTTPSConnection(urlsplit(server.url).netloc, timeout=_TIMEOUT_S, context=context)


def _is_ready(connection: http.client.HTTPSConnection) -> bool:
    """Over one connection as long as it holds: a handshake for each poll would take CPU time from the scheduler."""
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        answer.read()
        return answer.status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        connection.close()
        return False


@dataclass(frozen=True, slots=True)
class Histogram:
    """Cumulative counts by upper bound, the last of which is infinite. Units: seconds."""

    bounds: tuple[float, ...]
    counts: tuple[float, ...]

    @property
    def total(self) -> float:
        return self.counts[-1] if self.counts else 0.0

    def above(self, limit: float) -> int:
        """How many are above one of the bounds."""
        counts = dict(zip(self.bounds, self.counts, strict=True))
        return int(self.total - counts.get(limit, self.total))

    def quantile(self, share: float) -> float:
        """As Prometheus estimates it: a straight line within the bucket. NaN where there is nothing."""
        if not self.total:
            return math.nan
        rank = share * self.total
        lower_s, below = 0.0, 0.0
        for limit, count in zip(self.bounds, self.counts, strict=True):
            if count >= rank:
                if math.isinf(limit):
                    break
                return lower_s + (limit - lower_s) * (rank - below) / (count - below)
            lower_s, below = limit, count
        return lower_s

    def since(self, earlier: Histogram) -> Histogram:
        """What has been added to an earlier reading, which may be of before there was anything to read."""
        earlier_counts = dict(zip(earlier.bounds, earlier.counts, strict=True))
        added_counts = (
            count - earlier_counts.get(limit, 0.0) for limit, count in zip(self.bounds, self.counts, strict=True)
        )
        return Histogram(self.bounds, tuple(added_counts))


def histogram(page: str, name: str, **labels: str) -> Histogram:
    """One histogram of a page of metrics, all together whose labels are as given."""
    counts: dict[float, float] = {}
    for sample_labels, value in _samples(page, f"{name}_bucket"):
        if labels.items() <= sample_labels.items():
            limit = float(sample_labels["le"])
            counts[limit] = counts.get(limit, 0.0) + value
    return Histogram(tuple(sorted(counts)), tuple(counts[limit] for limit in sorted(counts)))


def total(page: str, name: str, **labels: str) -> float:
    """The sum of the samples of that name whose labels are as given."""
    return sum(value for sample_labels, value in _samples(page, name) if labels.items() <= sample_labels.items())


def _samples(page: str, name: str) -> Iterable[tuple[dict[str, str], float]]:
    # An API server's page has 20,000 lines, which take seconds to parse.
    lines = (line for line in page.splitlines() if line.startswith(name))
    for family in text_fd_to_metric_families(lines):
        for sample in family.samples:
            if sample.name == name:
                yield sample.labels, sample.value
