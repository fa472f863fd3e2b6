"""What was found: good or not, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Verdict(Enum):
    """How it is."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One answer. `advice` says what to do; there is none where nothing needs doing."""

    check: str
    verdict: Verdict
    message: str
    advice: str = ""

    def to_json(self) -> dict[str, Any]:
        """As one object of the report."""
        return {"check": self.check, "verdict": self.verdict.value, "message": self.message, "advice": self.advice}


@dataclass(slots=True)
class Report:
    """All findings, in the order in which they were made."""

    findings: list[Finding] = field(default_factory=list)

    def ok(self, check: str, message: str) -> None:
        """It is as it should be."""
        self.findings.append(Finding(check, Verdict.OK, message))

    def warn(self, check: str, message: str, advice: str) -> None:
        """It works, but not as well as it could."""
        self.findings.append(Finding(check, Verdict.WARNING, message, advice))

    def fail(self, check: str, message: str, advice: str) -> None:
        """It does not work, or not as it is asked to."""
        self.findings.append(Finding(check, Verdict.ERROR, message, advice))

    @property
    def is_good(self) -> bool:
        """Whether podium would run; warnings do not count."""
        return all(finding.verdict is not Verdict.ERROR for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """The whole report."""
        return {"ok": self.is_good, "findings": [finding.to_json() for finding in self.findings]}
