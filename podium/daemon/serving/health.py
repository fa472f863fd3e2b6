"""Health endpoints: which checks they have, and what they answer.

Owns the texts. Reasons for failure go to the log and to who asks for one check, not into the summary that anyone sees.

Source: apiserver/pkg/server/healthz/healthz.go (1.36.2).
Differs: an asynchronous check has a deadline.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

import anyio

from podium.telemetry import get_logger

log = get_logger("serving")

Check = Callable[[], str | Awaitable[str | None] | None]
"""Returns why something is not well, or raises `CheckError` with it; None if all is well."""

_CHECK_S_MAX = 5.0


class CheckError(Exception):
    """Something is not well; the text says why."""


def ping() -> str | None:
    """The check that only shows that the process answers."""
    return None


PING: Final[Mapping[str, Check]] = {"ping": ping}


@dataclass(frozen=True, slots=True)
class Health:
    """The checks of each endpoint by name, in the order in which they are shown."""

    healthz: Mapping[str, Check] = field(default_factory=lambda: PING)
    livez: Mapping[str, Check] = field(default_factory=lambda: PING)
    readyz: Mapping[str, Check] = field(default_factory=lambda: PING)

    def endpoints(self) -> Mapping[str, Mapping[str, Check]]:
        """Endpoint name → its checks."""
        return {"healthz": self.healthz, "livez": self.livez, "readyz": self.readyz}


@dataclass(frozen=True, slots=True)
class Report:
    """What an endpoint answers."""

    is_healthy: bool
    text: str


async def report(
    endpoint: str, checks: Mapping[str, Check], *, verbose: bool = False, exclude: Collection[str] = ()
) -> Report:
    """Run all checks of an endpoint but those excluded, and summarise."""
    lines = []
    failed: dict[str, str] = {}
    for name, check in checks.items():
        if name in exclude:
            lines.append(f"[+]{name} excluded: ok")
        elif (reason := await _outcome(check)) is None:
            lines.append(f"[+]{name} ok")
        else:
            lines.append(f"[-]{name} failed: reason withheld")
            failed[name] = reason
    if unknown := sorted(set(exclude) - set(checks)):
        quoted = ", ".join(f'"{name}"' for name in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}")
    if failed:
        log.info("Health check failed", endpoint=endpoint, reasons=failed)
        return Report(False, "\n".join([*lines, f"{endpoint} check failed"]) + "\n")
    return Report(True, "\n".join([*lines, f"{endpoint} check passed"]) + "\n" if verbose else "ok")


async def report_one(check: Check) -> Report:
    """Run one check and answer with its reason."""
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
