"""Logging of an API server that is unreachable or rejects the credentials: once, then at growing intervals.

All watches, the lease and every write fail in the same way; one line is logged for all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from podium.client.advice import diagnosis_of
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError, Unauthorized

log = get_logger("client")

_REPEATED_AFTER_S: Final = 10.0
_REPEATED_AFTER_S_MAX: Final = 300.0


class Outage:
    """The outages of one server, for the log.

    Attributes:
        server: its address.
        is_on: whether the last request failed in a way that concerns every request.
    """

    def __init__(self, server: str, now_s: Callable[[], float] = time.monotonic) -> None:
        self.is_on = False
        self.server = server
        self._now_s = now_s
        self._began_s = 0.0
        self._tell_at_s = 0.0
        self._pause_s = _REPEATED_AFTER_S
        self._failures = 0
        self._is_told = False

    def note_failure(self, error: ApiError) -> None:
        """Note a failure that concerns every request."""
        now_s = self._now_s()
        if not self.is_on:
            self.is_on, self._began_s = True, now_s
        self._failures += 1
        if now_s < self._tell_at_s:
            return
        cause, advice = diagnosis_of(error)
        is_refused = isinstance(error, Unauthorized)
        log.warning(
            "API server does not accept our credentials" if is_refused else "API server unreachable",
            server=self.server,
            cause=cause,
            advice=advice,
            error=str(error),
            failures=self._failures,
            for_s=round(now_s - self._began_s, 1),
            told_again_after_s=self._pause_s,
        )
        self._is_told = True
        self._tell_at_s = now_s + self._pause_s
        self._pause_s = min(self._pause_s * 2, _REPEATED_AFTER_S_MAX)

    def over(self) -> None:
        """End the outage: a request was answered. Call it only while `is_on`.

        A server that flaps is logged at most once per shortest interval.
        """
        now_s = self._now_s()
        if self._is_told:
            log.info("API server answers again", server=self.server, after_s=round(now_s - self._began_s, 1))
            self._tell_at_s = now_s + _REPEATED_AFTER_S
        self.is_on = self._is_told = False
        self._pause_s, self._failures = _REPEATED_AFTER_S, 0
