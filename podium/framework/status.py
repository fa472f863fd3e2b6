"""What a plugin answers: a code, and why.

Source: staging kube-scheduler/framework/interface.go, v1.36.2.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Code(enum.IntEnum):
    """The outcome of a plugin call; the numbers are upstream's."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def label(self) -> str:
        """The name that metrics, logs and recorded answers use."""
        return _LABELS[self]

    @property
    def is_rejected(self) -> bool:
        """Whether the pod does not fit, as against an error."""
        return self in _REJECTED


_LABELS = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}
_REJECTED = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING})


@dataclass(frozen=True, slots=True)
class Status:
    """A plugin's answer that is not plain success; success is None wherever a `Status | None` is returned.

    `plugin` is filled in by the framework.
    """

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    error: Exception | None = None

    @property
    def is_rejected(self) -> bool:
        """Whether the pod does not fit, as against an error."""
        return self.code in _REJECTED

    @property
    def all_reasons(self) -> tuple[str, ...]:
        """The text of the error, if there is one, then the reasons."""
        return (str(self.error), *self.reasons) if self.error is not None else self.reasons

    @property
    def message(self) -> str:
        """All reasons in one line."""
        return ", ".join(self.all_reasons)

    def by(self, plugin: str) -> Status:
        """This status with the plugin's name on it."""
        return Status(self.code, self.reasons, plugin, self.error)


SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """Rejected; removing other pods may help."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Rejected; removing other pods does not help."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def error_status(error: Exception | str) -> Status:
    """An internal failure."""
    return Status(Code.ERROR, error=error if isinstance(error, Exception) else PluginError(error))


class PluginError(Exception):
    """A failure that a plugin or the framework reports in its own words."""


class ScheduleError(Exception):
    """The attempt failed for another reason than that the pod does not fit."""


def demand_status(answer: object) -> Status | None:
    """What a plugin answered, if it is what a plugin may answer.

    Raises:
        PluginError: it is neither a Status nor None.
    """
    if answer is None or isinstance(answer, Status):
        return answer
    raise PluginError(f"answered {answer!r}, which is not a Status")
