"""Field errors in Kubernetes' format, and the exception that carries all errors of a file.

Owns the format of errors: ``<path>: Invalid value: <value>: <detail>`` and so on. Never decides what is wrong.

Source: apimachinery pkg/util/validation/field/errors.go (1.36)
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from podium.lib.error_text import UserFacingError


class ErrorKind(StrEnum):
    """The kind of a field error; the value follows the path in the message."""

    INVALID = "Invalid value"
    REQUIRED = "Required value"
    DUPLICATE = "Duplicate value"
    NOT_SUPPORTED = "Unsupported value"
    FORBIDDEN = "Forbidden"
    UNKNOWN = "unknown field"
    DUPLICATE_FIELD = "duplicate field"
    TYPE = "wrong type"
    SYNTAX = "syntax error"
    PROFILE = "profile cannot be built"


_WITHOUT_VALUE = frozenset({ErrorKind.REQUIRED, ErrorKind.FORBIDDEN, ErrorKind.UNKNOWN, ErrorKind.DUPLICATE_FIELD})
_DETAIL_ONLY = frozenset({ErrorKind.TYPE, ErrorKind.SYNTAX, ErrorKind.PROFILE})


_SHOWN_MAX = 600


def show(value: Any) -> str:
    """Write a value for a message: compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


@dataclass(frozen=True, slots=True)
class FieldError:
    """One error of one field.

    Attributes: ``path``, empty for the file as a whole; ``line``, from 1; ``hint``, a likely correction, which is not
    part of the message, since upstream has no hints.
    """

    path: str
    kind: ErrorKind
    value: Any = None
    detail: str = ""
    line: int | None = None
    hint: str = ""

    @property
    def text(self) -> str:
        """The message in Kubernetes' format, without the line."""
        if self.kind in _DETAIL_ONLY:
            parts = [self.path, self.detail]
        elif self.kind in _WITHOUT_VALUE:
            parts = [self.path, self.kind.value, self.detail]
        else:
            parts = [self.path, self.kind.value, show(self.value), self.detail]
        return ": ".join(part for part in parts if part)

    def __str__(self) -> str:
        return self.text


def _shorten(text: str) -> str:
    """Shorten the text for display; a value may be as long as a file."""
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}... ({len(text)} characters)"


class ErrorList:
    """Collects field errors; one method per kind, as in upstream's package ``field``."""

    __slots__ = ("_errors",)

    def __init__(self) -> None:
        self._errors: list[FieldError] = []

    @property
    def errors(self) -> tuple[FieldError, ...]:
        """The collected errors, in order."""
        return tuple(self._errors)

    def add(self, error: FieldError) -> None:
        """Add one error unchanged."""
        self._errors.append(error)

    def extend(self, errors: Iterable[FieldError]) -> None:
        """Add several errors unchanged."""
        self._errors.extend(errors)

    def invalid(self, path: str, value: Any, detail: str) -> None:
        """Report a value of the right type that is not acceptable."""
        self.add(FieldError(path, ErrorKind.INVALID, value, detail))

    def required(self, path: str, detail: str = "") -> None:
        """Report a field without its required value."""
        self.add(FieldError(path, ErrorKind.REQUIRED, None, detail))

    def duplicate(self, path: str, value: Any) -> None:
        """Report a value that must be unique but is not."""
        self.add(FieldError(path, ErrorKind.DUPLICATE, value))

    def not_supported(self, path: str, value: Any, supported: Iterable[str]) -> None:
        """Report a value that is not one of the supported ones."""
        names = ", ".join(show(name) for name in supported)
        self.add(FieldError(path, ErrorKind.NOT_SUPPORTED, value, f"supported values: {names}"))

    def forbidden(self, path: str, detail: str) -> None:
        """Report a field that must not be set here."""
        self.add(FieldError(path, ErrorKind.FORBIDDEN, None, detail))


class ConfigError(UserFacingError):
    """A configuration file was refused; carries every error found in it.

    Attributes: ``errors`` (never empty, in file order if lines are known), ``source`` (the name of the file).
    """

    def __init__(self, errors: Iterable[FieldError], source: str = "") -> None:
        self.errors = tuple(errors)
        self.source = source
        assert self.errors, "a refused configuration has at least one error"
        super().__init__("\n".join(self.lines()))

    def lines(self) -> tuple[str, ...]:
        """Return one line per error: ``file.yaml:12: parallelism: expected int32, got "five"``."""
        return tuple(f"{self._where(error)}{_shorten(error.text)}{error.hint}" for error in self.errors)

    def _where(self, error: FieldError) -> str:
        place = [self.source] if self.source else []
        if error.line is not None:
            place.append(str(error.line) if self.source else f"line {error.line}")
        return f"{':'.join(place)}: " if place else ""
