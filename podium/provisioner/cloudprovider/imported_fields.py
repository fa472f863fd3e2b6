"""The fields of providers' documents, whose errors name the field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from podium.objects.errors import FieldError


@dataclass(frozen=True, slots=True)
class Field:
    """A part of a document, and its path in errors."""

    content: Any
    path: str

    def __contains__(self, name: str) -> bool:
        """Return True if it is an object that has the field."""
        return isinstance(self.content, dict) and self.content.get(name) is not None

    def get(self, name: str, default: Any = None) -> Any:
        """Return the field's content, or the default if it is absent or null."""
        return self.content[name] if name in self else default

    def field(self, name: str) -> Field:
        """Return the field. Raises: FieldError: it is missing."""
        if name not in self:
            raise FieldError(self._path_of(name), "is missing")
        return Field(self.content[name], self._path_of(name))

    def items(self, name: str) -> Sequence[Field]:
        """Return the items of a list. Raises: FieldError: the field is no list."""
        return items_of(self.field(name).content, self._path_of(name))

    def items_within(self, name: str, items_name: str) -> Sequence[Field]:
        """Return the items of a list within a field; none if the field is absent."""
        return self.field(name).items(items_name) if name in self else ()

    def text(self, name: str) -> str:
        """Return a text. Raises: FieldError: the field is none, or is empty."""
        text = self.field(name).content
        if not isinstance(text, str) or not text:
            raise FieldError(self._path_of(name), f"{text!r} is not a text")
        return text

    def number(self, name: str) -> float:
        """Return a number that is not negative, also of a text. Raises: FieldError: the field is none."""
        raw = self.field(name).content
        try:
            number = float(raw) if isinstance(raw, str | int | float) and not isinstance(raw, bool) else -1.0
        except ValueError:
            number = -1.0
        if not 0 <= number < float("inf"):
            raise FieldError(self._path_of(name), f"{raw!r} is not a number that is not negative")
        return number

    def count(self, name: str) -> int:
        """Return a whole number that is not negative. Raises: FieldError: the field is none."""
        number = self.number(name)
        if number != int(number):
            raise FieldError(self._path_of(name), f"{number!r} is not a whole number")
        return int(number)

    def _path_of(self, name: str) -> str:
        # The path of a whole document is the name of its file.
        separator = "." if self.path and not self.path.endswith(": ") else ""
        return f"{self.path}{separator}{name}"


def items_of(content: object, path: str) -> Sequence[Field]:
    """Return the items of a list, each with its path. Raises: FieldError: it is no list."""
    if not isinstance(content, list):
        raise FieldError(path, "is not a list")
    return [Field(item, f"{path}[{index}]") for index, item in enumerate(content)]


def in_requirement(key: str, value: str) -> dict[str, Any]:
    """Return the requirement of a catalogue's offering that a label has this value."""
    return {"key": key, "operator": "In", "values": [value]}
