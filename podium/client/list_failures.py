"""Logging of failed lists and watches: resources with the same failure share one line, which is repeated less and less
often.

A failing server or load balancer rejects every watched resource, again and again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError, Forbidden, NotFound, Unauthorized, Unreachable

log = get_logger("client")

_REPEATED_AFTER_S: Final = 10.0
_REPEATED_AFTER_S_MAX: Final = 300.0
_FORGOTTEN_AFTER_S: Final = 60.0
_OF_ONE_KIND: Final[dict[type[ApiError], str]] = {
    Forbidden: "not allowed to list and watch: the role needs both verbs on this resource",
    NotFound: "the API server does not serve this resource",
}
"""The messages for errors that concern one resource only."""


@dataclass(slots=True)
class _Alike:
    """Failures that are logged together. Times are on the monotonic clock."""

    tell_at_s: float
    failed_at_s: float
    pause_s: float = _REPEATED_AFTER_S
    failures: int = 0
    others: set[str] = field(default_factory=set)


class ListFailures:
    """Logs the failures of one server's lists and watches."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._alike: dict[tuple[type[ApiError], str], _Alike] = {}

    def log(self, resource: str, error: ApiError, during: str, retry_s: float) -> None:
        """Log the failure, now or together with others."""
        values = {"resource": resource, "during": during, "error": str(error), "retry_s": round(retry_s, 3)}
        message = _OF_ONE_KIND.get(type(error), "list or watch failed")
        if isinstance(error, (Unreachable, Unauthorized)):
            # The session logs this once for all requests.
            log.debug(message, **values)
            return
        now_s = self._clock.monotonic()
        key = (type(error), resource if type(error) in _OF_ONE_KIND else "")
        alike = self._alike.get(key)
        if alike is None or now_s - alike.failed_at_s > max(_FORGOTTEN_AFTER_S, 2 * retry_s):
            alike = self._alike[key] = _Alike(now_s, now_s)
        alike.failed_at_s = now_s
        alike.failures += 1
        if now_s < alike.tell_at_s:
            alike.others.add(resource)
            log.debug(message, **values)
            return
        if resources := sorted(alike.others - {resource}):
            values["others"] = resources
        log.warning(message, **values, failures=alike.failures)
        alike.others.clear()
        alike.tell_at_s = now_s + alike.pause_s
        alike.pause_s = min(alike.pause_s * 2, _REPEATED_AFTER_S_MAX)
