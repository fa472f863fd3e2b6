"""Field errors in Kubernetes' own form, and the exception that carries all of a file's errors.

Owns how an error reads: ``<path>: Invalid value: <value>: <detail>`` and so on. Never decides what is wrong.

Source: apimachinery pkg/util/validation/field/errors.go (1.36)
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from podium.lib.error_words import Worded


class ErrorKind(StrEnum):
    """What is wrong with a field; the value opens the message after the path."""

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
    """A value as it reads in a message: compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing wrong with one field.

    Attributes: ``path``, empty for the file as a whole; ``line``, from 1; ``hint``, what may have been meant, which is
    no part of the message: upstream has no such thing.
    """

    path: str
    kind: ErrorKind
    value: Any = None
    detail: str = ""
    line: int | None = None
    hint: str = ""

    @property
    def text(self) -> str:
        """The message in Kubernetes' form, without the line."""
        if self.kind in _DETAIL_ONLY:
            parts = [self.path, self.detail]
        elif self.kind in _WITHOUT_VALUE:
            parts = [self.path, self.kind.value, self.detail]
        else:
            parts = [self.path, self.kind.value, show(self.value), self.detail]
        return ": ".join(part for part in parts if part)

    def __str__(self) -> str:
        return self.text


def _shortened(text: str) -> str:
    """The text as a person wants to read it; a value may be as long as a file."""
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}... ({len(text)} characters)"


class ErrorList:
    """Collects field errors; one method per kind, in the words of the field-error package."""

    __slots__ = ("_errors",)

    def __init__(self) -> None:
        self._errors: list[FieldError] = []

    @property
    def errors(self) -> tuple[FieldError, ...]:
        """What has been collected, in order."""
        return tuple(self._errors)

    def add(self, error: FieldError) -> None:
        """Add one error as it is."""
        self._errors.append(error)

    def extend(self, errors: Iterable[FieldError]) -> None:
        """Add several errors as they are."""
        self._errors.extend(errors)

    def invalid(self, path: str, value: Any, detail: str) -> None:
        """The value is of the right type and not acceptable."""
        self.add(FieldError(path, ErrorKind.INVALID, value, detail))

    def required(self, path: str, detail: str = "") -> None:
        """The field must have a value."""
        self.add(FieldError(path, ErrorKind.REQUIRED, None, detail))

    def duplicate(self, path: str, value: Any) -> None:
        """The value must be unique and is not."""
        self.add(FieldError(path, ErrorKind.DUPLICATE, value))

    def not_supported(self, path: str, value: Any, supported: Iterable[str]) -> None:
        """The value is not one of the few that are known."""
        listed = ", ".join(show(name) for name in supported)
        self.add(FieldError(path, ErrorKind.NOT_SUPPORTED, value, f"supported values: {listed}"))

    def forbidden(self, path: str, detail: str) -> None:
        """The field must not be set here."""
        self.add(FieldError(path, ErrorKind.FORBIDDEN, None, detail))


class ConfigError(Worded):
    """A configuration file that is refused, with every error found in it.

    Attributes: ``errors`` (never empty, in file order where lines are known), ``source`` (what the file is called).
    """

    def __init__(self, errors: Iterable[FieldError], source: str = "") -> None:
        self.errors = tuple(errors)
        self.source = source
        assert self.errors, "a refused configuration names at least one error"
        super().__init__("\n".join(self.lines()))

    def lines(self) -> tuple[str, ...]:
        """One line per error: ``file.yaml:12: parallelism: expected int32, got "five"``."""
        return tuple(f"{self._where(error)}{_shortened(error.text)}{error.hint}" for error in self.errors)

    def _where(self, error: FieldError) -> str:
        place = [self.source] if self.source else []
        if error.line is not None:
            place.append(str(error.line) if self.source else f"line {error.line}")
        return f"{':'.join(place)}: " if place else ""
