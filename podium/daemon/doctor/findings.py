"""The findings of the checks: a verdict, a message, and advice."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Verdict(Enum):
    """The verdict of a check."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `advice` says what to do; it is empty if nothing needs to be done."""

    check: str
    verdict: Verdict
    message: str
    advice: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the finding as one object of the JSON report."""
        return {"check": self.check, "verdict": self.verdict.value, "message": self.message, "advice": self.advice}


@dataclass(slots=True)
class Report:
    """All findings, in the order of the checks."""

    findings: list[Finding] = field(default_factory=list)

    def ok(self, check: str, message: str) -> None:
        """Add a check that passed."""
        self.findings.append(Finding(check, Verdict.OK, message))

    def warn(self, check: str, message: str, advice: str) -> None:
        """Add a check that found something which works, but not as well as it could."""
        self.findings.append(Finding(check, Verdict.WARNING, message, advice))

    def fail(self, check: str, message: str, advice: str) -> None:
        """Add a check that found something which does not work, or not as configured."""
        self.findings.append(Finding(check, Verdict.ERROR, message, advice))

    @property
    def is_good(self) -> bool:
        """True if podium would run; warnings do not count."""
        return all(finding.verdict is not Verdict.ERROR for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the whole report as JSON."""
        return {"ok": self.is_good, "findings": [finding.to_json() for finding in self.findings]}
