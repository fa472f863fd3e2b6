"""Reads and writes single JSON scalars: strings, numbers, booleans and durations, as Go's types do.

Invariant: a scalar is accepted only if it has exactly the right type; text is never converted.

Source: encoding/json, metav1.Duration (a null there is not "absent" but an unreadable duration)
"""

import base64
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from podium.config.document import Node
from podium.config.duration import format_duration, parse_duration
from podium.config.shapes import UNSET, Reading

_FLOAT32_MAX: Final = 3.4028234663852886e38


@dataclass(frozen=True)
class Scalar:
    """A string, number or boolean: ``accept`` returns the value, or UNSET for a wrong type."""

    description: str
    zero: Any
    accept: Callable[[Any], Any]
    to_json: Callable[[Any], Any] = lambda value: value
    reads_null: bool = False

    def read(self, node: Node, path: str, reading: Reading) -> Any:
        """Read the scalar; null counts as unset, unless upstream's type requires a value."""
        if node.value is None and not self.reads_null:
            return UNSET
        value = self.accept(node.value)
        return reading.wrong_type(node, path, self.description) if value is UNSET else value

    def write(self, value: Any) -> Any:
        """Write the scalar as JSON."""
        return self.to_json(value)


def _integer(bits: int) -> Scalar:
    limit = 2 ** (bits - 1)

    def accept(value: Any) -> Any:
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        return value if is_integer and -limit <= value < limit else UNSET

    return Scalar(f"int{bits}", 0, accept)


def _accept_float(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return UNSET
    return _nearest_float32(value) if abs(value) <= _FLOAT32_MAX else UNSET


def _nearest_float32(value: float) -> float:
    """Return the shortest decimal of the same single-precision number, which upstream writes."""
    single = struct.pack("f", value)
    (exact,) = struct.unpack("f", single)
    candidates = (float(f"{exact:.{digits}g}") for digits in range(1, 9))
    return next((short for short in candidates if _is_float32(short, single)), float(f"{exact:.9g}"))


def _is_float32(value: float, single: bytes) -> bool:
    try:
        return struct.pack("f", value) == single
    except OverflowError:
        return False


def _accept_duration(value: Any) -> Any:
    try:
        return parse_duration(value) if isinstance(value, str) else UNSET
    except ValueError:
        return UNSET


def _accept_base64(value: Any) -> Any:
    try:
        content = base64.b64decode(value.replace("\n", ""), validate=True) if isinstance(value, str) else UNSET
    except ValueError:
        return UNSET
    return UNSET if content is UNSET else value


def _float_to_json(value: float) -> int | float:
    return int(value) if math.isfinite(value) and value.is_integer() else value


_DURATION_TEXT: Final = 'a duration such as "1m30s"'
STRING: Final = Scalar("string", "", lambda value: value if isinstance(value, str) else UNSET)
BOOL: Final = Scalar("bool", False, lambda value: value if isinstance(value, bool) else UNSET)
BASE64: Final = Scalar("base64 text", "", _accept_base64)
INT32: Final = _integer(32)
INT64: Final = _integer(64)
FLOAT32: Final = Scalar("number", 0.0, _accept_float, _float_to_json)
OPTIONAL_DURATION: Final = Scalar(_DURATION_TEXT, 0.0, _accept_duration, format_duration)
DURATION: Final = Scalar(_DURATION_TEXT, 0.0, _accept_duration, format_duration, reads_null=True)
