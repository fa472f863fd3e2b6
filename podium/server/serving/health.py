"""Health endpoints: their checks and their responses.

Owns the texts. The reason of a failure is logged and returned for a single check, but is not in the public summary.

Source: apiserver/pkg/server/healthz/healthz.go (1.36.2).
Differs: an asynchronous check has a deadline.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

import anyio

from podium.lib.log import get_logger

log = get_logger("serving")

Check = Callable[[], str | Awaitable[str | None] | None]
"""Returns why the check fails, or raises `CheckError` with the reason; None if it passes."""

_CHECK_S_MAX = 5.0


class CheckError(Exception):
    """A check fails; the text gives the reason."""


def ping() -> str | None:
    """Return the check that only shows that the process responds."""
    return None


PING: Final[Mapping[str, Check]] = {"ping": ping}


@dataclass(frozen=True, slots=True)
class Health:
    """The checks of each endpoint by name, in the order in which they are listed."""

    healthz: Mapping[str, Check] = field(default_factory=lambda: PING)
    livez: Mapping[str, Check] = field(default_factory=lambda: PING)
    readyz: Mapping[str, Check] = field(default_factory=lambda: PING)

    def endpoints(self) -> Mapping[str, Mapping[str, Check]]:
        """Return the checks of each endpoint, by endpoint name."""
        return {"healthz": self.healthz, "livez": self.livez, "readyz": self.readyz}


@dataclass(frozen=True, slots=True)
class Report:
    """The response of an endpoint."""

    is_healthy: bool
    text: str


class Endpoint:
    """The checks of one endpoint and their last results, so that only changes are logged."""

    def __init__(self, name: str, checks: Mapping[str, Check]) -> None:
        self._name = name
        self._checks = checks
        self._failing: dict[str, str] = {}

    async def report(self, *, verbose: bool = False, exclude: Collection[str] = ()) -> Report:
        """Run all checks except the excluded ones, and summarise the results."""
        lines = []
        reasons: dict[str, str | None] = {}
        for name, check in self._checks.items():
            if name in exclude:
                lines.append(f"[+]{name} excluded: ok")
                continue
            reasons[name] = await _outcome(check)
            # As upstream: the summary is public, and reasons may name internal addresses.
            lines.append(f"[+]{name} ok" if reasons[name] is None else f"[-]{name} failed: reason withheld")
        if unknown := sorted(set(exclude) - set(self._checks)):
            quoted = ", ".join(f'"{name}"' for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}")
        self._log_changes(reasons)
        if any(reason is not None for reason in reasons.values()):
            return Report(False, "\n".join([*lines, f"{self._name} check failed"]) + "\n")
        return Report(True, "\n".join([*lines, f"{self._name} check passed"]) + "\n" if verbose else "ok")

    def _log_changes(self, reasons: Mapping[str, str | None]) -> None:
        failing = {name: reason for name, reason in reasons.items() if reason is not None}
        news = {name: reason for name, reason in failing.items() if self._failing.get(name) != reason}
        mended = [name for name in reasons if name in self._failing and name not in failing]
        if news:
            log.info("Health check failed", endpoint=self._name, reasons=news)
        if mended:
            log.info("Health check passes again", endpoint=self._name, checks=mended)
        # What was excluded this time keeps its last result, or it would be logged as news next time.
        earlier = {name: reason for name, reason in self._failing.items() if name not in reasons}
        self._failing = earlier | failing


async def report_one(check: Check) -> Report:
    """Run one check; the response contains the reason."""
    reason = await _outcome(check)
    return Report(True, "ok") if reason is None else Report(False, f"internal server error: {reason}\n")


async def _outcome(check: Check) -> str | None:
    try:
        answer = check()
        if not inspect.isawaitable(answer):
            return answer
        with anyio.fail_after(_CHECK_S_MAX):
            return await answer
    except CheckError as failure:
        return str(failure)
    except TimeoutError:
        return f"no answer in {_CHECK_S_MAX:g} s"
