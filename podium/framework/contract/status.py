"""A plugin's status: a code, and the reasons for it.

Source: staging kube-scheduler/framework/interface.go, v1.36.2.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from podium.lib.error_text import UserFacingError, error_text, type_name


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
        """The plugin rejected the pod; an error is not a rejection."""
        return self in MAY_REJECT


_LABELS = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}
# A tuple, not a set: an Enum's hash runs Python code, while a tuple is searched by identity first.
MAY_REJECT = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)
"""The codes that say that the pod does not fit."""
_REPR_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Status:
    """A plugin's answer that is not plain success; success is None wherever a `Status | None` is returned.

    `plugin` is filled in by the framework.

    Invariant: every field has its declared type, so readers of a status need no checks.
    """

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    error: BaseException | None = None

    def __post_init__(self) -> None:
        """Refuse fields of a wrong type.

        Raises:
            PluginError: names the field.
        """
        if type(self.code) is not Code:
            raise PluginError(f"Status.code: {short_repr(self.code)} is not a Code")
        if type(self.reasons) is not tuple:
            raise PluginError(f"Status.reasons: {short_repr(self.reasons)} is not a tuple of texts")
        for reason in self.reasons:
            if type(reason) is not str:
                object.__setattr__(self, "reasons", tuple(map(_plain_text, self.reasons)))
                break
        if not isinstance(self.plugin, str):
            raise PluginError(f"Status.plugin: {short_repr(self.plugin)} is not a text")
        if self.error is not None and not isinstance(self.error, BaseException):
            raise PluginError(f"Status.error: {short_repr(self.error)} is not an exception")

    @property
    def is_rejected(self) -> bool:
        """The plugin rejected the pod; an error is not a rejection."""
        return self.code in MAY_REJECT

    @property
    def all_reasons(self) -> tuple[str, ...]:
        """The text of the error, if there is one, then the reasons."""
        return (error_text(self.error), *self.reasons) if self.error is not None else self.reasons

    @property
    def message(self) -> str:
        """All reasons in one line."""
        return ", ".join(self.all_reasons)

    def by(self, plugin: str) -> Status:
        """Return a copy of this status with the plugin's name."""
        return Status(self.code, self.reasons, plugin, self.error)


SKIP = Status(Code.SKIP)
FAILED = Status(Code.ERROR)
"""An error without a text, for observers."""


def unschedulable(*reasons: str) -> Status:
    """Return a rejection that removing other pods may lift."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Return a rejection that removing other pods does not lift."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def error_status(error: BaseException | str) -> Status:
    """Return an internal failure."""
    return Status(Code.ERROR, error=error if isinstance(error, BaseException) else PluginError(error))


class PluginError(UserFacingError):
    """A failure of a plugin, or of a call to one. The message says what went wrong."""


class GateNeededError(PluginError):
    """A plugin runs only with a feature gate."""

    def __init__(self, plugin: str, gate: str) -> None:
        super().__init__(f"{plugin} needs the feature gate {gate}")
        self.plugin = plugin
        self.gate = gate


class ScheduleError(UserFacingError):
    """The scheduling attempt failed for a reason other than that the pod does not fit."""


def demand_status(answer: object, codes: Collection[Code] = MAY_REJECT) -> Status | None:
    """Check what a plugin returned at an extension point: None for success, an error, or one of the allowed codes.

    Raises:
        PluginError: the value is neither a Status nor None, or its code is not allowed at that extension point.
    """
    if answer is None or (type(answer) is Status and answer.code in codes):
        return answer
    if not isinstance(answer, Status):
        raise PluginError(f"answered {short_repr(answer)}, which is not a Status")
    status = answer
    if type(answer) is not Status:
        status = Status(answer.code, answer.reasons, answer.plugin, answer.error)
    if status.code is Code.SUCCESS:
        return None
    if status.code is not Code.ERROR and status.code not in codes:
        raise PluginError(failure_text(status))
    return status


def demand_nothing(answer: object) -> None:
    """Check that a method that must return None did so.

    Raises:
        PluginError: the value is not None.
    """
    if answer is not None:
        raise PluginError(f"answered {short_repr(answer)}, where nothing is to be answered")


def failure_text(status: Status) -> str:
    """Return the message for an Error status, or for a status that its extension point does not allow."""
    if status.code is Code.ERROR:
        return status.message
    reason = f" ({status.message})" if status.message else ""
    return f"answered {status.code.label}{reason}, which it may not"


def _plain_text(reason: object) -> str:
    """Return the text without what a subclass of str overrides, which is a stranger's code."""
    if not isinstance(reason, str):
        raise PluginError(f"Status.reasons: {short_repr(reason)} is not a text")
    return str.__str__(reason)


def short_repr(value: object) -> str:
    """Return a short description of an unexpected value. Never raises, even if the value's repr does."""
    if inspect.iscoroutine(value):
        value.close()
        return "a coroutine, as an async def does,"
    try:
        text = str.__str__(repr(value))
    except BaseException as error:  # noqa: BLE001 - a stranger's code
        return f"a {type_name(value)} ({type_name(error)} in its repr)"
    return text if len(text) <= _REPR_MAX else f"{text[:_REPR_MAX]} ..."
