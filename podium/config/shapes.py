"""Reads and writes JSON lists and objects; ``podium.config.scalars`` does the same for scalars.

Owns strict reading (reports all unknown fields and wrong types, each with its path) and writing values back in
upstream's shape. Names no field: ``podium.config.schema`` is the table of fields.

Invariant: reading never raises, whatever the file contains. An unreadable value is reported and takes its default.

Source: encoding/json and sigs.k8s.io/json as apimachinery's strict decoder uses them (null leaves a field unset)
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from typing import Any, Final, Protocol

from podium.config.document import child
from podium.config.field_errors import ErrorKind, ErrorList, FieldError, show
from podium.lib.yaml_reader import Node


class Unset:
    """Stands for a value that is absent, null or unreadable."""


UNSET: Final = Unset()


class Reading:
    """One pass over a file: the errors found, and the fields that are present.

    Attributes: ``errors``; ``absent_keys``, the keys that the release does not know; ``present``, path → line (None in
    JSON text) of every field that has a value.
    """

    def __init__(self, errors: ErrorList | None = None, absent_keys: Container[str] = ()) -> None:
        self.errors = errors if errors is not None else ErrorList()
        self.absent_keys = absent_keys
        self.present: dict[str, int | None] = {}

    def wrong_type(self, node: Node, path: str, type_name: str) -> Unset:
        """Report a value of the wrong type."""
        detail = f"expected {type_name}, got {_describe(node)}"
        self.errors.add(FieldError(path, ErrorKind.TYPE, None, detail, node.line))
        return UNSET


def _describe(node: Node) -> str:
    if isinstance(node.value, dict):
        return "an object"
    return "a list" if isinstance(node.value, list) else show(node.value)


class Shape(Protocol):
    """Reads and writes one kind of value. ``zero`` is the value of an absent field without a default."""

    @property
    def zero(self) -> Any:
        """The value of a field that is absent and has no default."""

    def read(self, node: Node, path: str, reading: Reading) -> Any:
        """Read the value; return ``UNSET`` if the field keeps its default."""

    def write(self, value: Any) -> Any:
        """Write the value as JSON."""


@dataclass(frozen=True)
class ListOf:
    """A list, read as a tuple."""

    item: Shape
    zero: Any = ()

    def read(self, node: Node, path: str, reading: Reading) -> Any:
        """Read the items; a null or unreadable one becomes a zero value, so that positions do not shift."""
        if node.value is None:
            return UNSET
        if not isinstance(node.value, list):
            return reading.wrong_type(node, path, "a list")
        items = (self.item.read(item, f"{path}[{i}]", reading) for i, item in enumerate(node.value))
        # Errors name positions, and later stages read the rest of the list.
        return tuple(self.item.zero if item is UNSET else item for item in items)

    def write(self, value: Any) -> Any:
        """Write the items as a JSON list."""
        return [self.item.write(item) for item in value]


@dataclass(frozen=True)
class MapOf:
    """A JSON object with arbitrary keys and values of one shape."""

    item: Shape
    zero: Any = None

    def read(self, node: Node, path: str, reading: Reading) -> Any:
        """Read the object as a dict."""
        if node.value is None:
            return UNSET
        if not isinstance(node.value, dict):
            return reading.wrong_type(node, path, "an object")
        items = {key: self.item.read(item, child(path, key), reading) for key, item in node.value.items()}
        return {key: self.item.zero if item is UNSET else item for key, item in items.items()}

    def write(self, value: Any) -> Any:
        """Write the object as JSON."""
        return {key: self.item.write(item) for key, item in value.items()}


@dataclass(frozen=True)
class Key:
    """One field of a record.

    ``zero_is_default``: upstream's type can't distinguish an explicit zero from an absent value, so zero means the
    default.
    ``omit_empty``: omitted from the output if it is None, an empty string or list, false or zero.
    """

    name: str
    attribute: str
    shape: Shape
    zero_is_default: bool = False
    omit_empty: bool = False


def read_keys(node: Node, path: str, keys: Mapping[str, Key], reading: Reading) -> dict[str, Any] | Unset:
    """Read the present values of a JSON object by attribute; report unknown fields. UNSET if it is not an object."""
    if not isinstance(node.value, dict):
        return reading.wrong_type(node, path, "an object")
    values: dict[str, Any] = {}
    for name, item in node.value.items():
        below = child(path, name)
        key = keys.get(name)
        if key is None or name in reading.absent_keys:
            present_keys = [key_name for key_name in keys if key_name not in reading.absent_keys]
            reading.errors.add(_unknown(below, name, present_keys, item.line))
            continue
        # Null counts as absent, so it must not count as set for the warnings either.
        if item.value is not None:
            reading.present[below] = item.line
        value = key.shape.read(item, below, reading)
        # Upstream's defaulting cannot tell a zero from an absent field without a pointer.
        if value is not UNSET and not (key.zero_is_default and not value):
            values[key.attribute] = value
    return values


def _unknown(path: str, name: str, keys: Sequence[str], line: int | None) -> FieldError:
    close = get_close_matches(name, keys, n=1)
    detail = f'did you mean "{close[0]}"?' if close else ""
    return FieldError(path, ErrorKind.UNKNOWN, name, detail, line)


class Record:
    """A JSON object read into a frozen dataclass whose defaults are the file's defaults.

    Attributes with `set_by` in their metadata are set by a feature gate or the release alone, and have no key.
    """

    def __init__(self, cls: type[Any], *keys: Key) -> None:
        self.cls = cls
        self.keys = {key.name: key for key in keys}
        with_default = {f.name for f in fields(cls) if f.default is not MISSING}
        self._zeros = {key.attribute: key.shape.zero for key in keys if key.attribute not in with_default}
        # A field without a key could never be set by a file.
        missing = {f.name for f in fields(cls) if "set_by" not in f.metadata} - {key.attribute for key in keys}
        assert not missing, f"{cls.__name__}: no key for {sorted(missing)}"

    @property
    def zero(self) -> Any:
        """The record of an empty object."""
        return self.cls(**self._zeros)

    def read(self, node: Node, path: str, reading: Reading) -> Any:
        """Read the record; UNSET for null."""
        if node.value is None:
            return UNSET
        values = read_keys(node, path, self.keys, reading)
        return UNSET if isinstance(values, Unset) else self.cls(**{**self._zeros, **values})

    def write(self, value: Any) -> dict[str, Any]:
        """Write the record as a JSON object."""
        return write_keys(self.keys, lambda attribute: getattr(value, attribute))


class Plain:
    """A JSON object kept as a dict in its JSON form, without empty fields; unknown fields are errors."""

    zero: Any = None

    def __init__(self, *keys: Key) -> None:
        self.keys = {key.name: key for key in keys}

    def read(self, node: Node, path: str, reading: Reading) -> Any:
        """Read the dict; UNSET for null."""
        if node.value is None:
            return UNSET
        values = read_keys(node, path, self.keys, reading)
        if isinstance(values, Unset):
            return UNSET
        return write_keys(self.keys, lambda attribute: values.get(attribute, self.keys[attribute].shape.zero))

    def write(self, value: Any) -> Any:
        """Return the dict unchanged."""
        return value


def write_keys(keys: Mapping[str, Key], get: Callable[[str], Any]) -> dict[str, Any]:
    """Write a JSON object with these keys, in their order, without None and values that ``omit_empty`` covers."""
    fields: dict[str, Any] = {}
    for key in keys.values():
        value = get(key.attribute)
        if value is None or (key.omit_empty and not value):
            continue
        fields[key.name] = key.shape.write(value)
    return fields
