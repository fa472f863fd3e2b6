"""Converts between Go duration strings and seconds.

Source: Go's time.ParseDuration and Duration.String (the notation that metav1.Duration uses)
Differs: the value is a float of seconds, so a duration beyond 104 days is not exact to the nanosecond.
"""

import re
from fractions import Fraction
from typing import Final

_UNITS_NS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_TERM = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_INT64_MAX: Final = 2**63 - 1


def parse_duration(text: str) -> float:
    """Return the seconds of a duration such as ``1m30s``, ``-1.5h`` or ``0``.

    Raises: ValueError with the message of Go's parser.
    """
    wrong = ValueError(f'time: invalid duration "{text}"')
    digits = text[1:] if text[:1] in ("-", "+") else text
    if digits == "0":
        return 0.0
    if not digits:
        raise wrong
    total_ns = 0
    position = 0
    while position < len(digits):
        term = _TERM.match(digits, position)
        if term is None or not (term[1] or term[2]):
            raise wrong
        total_ns += _term_ns(term[1], term[2] or "", _UNITS_NS[term[3]])
        position = term.end()
    if total_ns > _INT64_MAX + (text[0] == "-"):
        raise wrong
    seconds = total_ns / 1_000_000_000
    return -seconds if text[0] == "-" else seconds


def _term_ns(integer: str, fraction: str, unit_ns: int) -> int:
    return int(integer or "0") * unit_ns + (int(fraction) * unit_ns // 10 ** len(fraction) if fraction else 0)


def format_duration(seconds: float) -> str:
    """Write a duration as Go does: ``10m0s``, ``1.5s``, ``250ms``, ``0s``."""
    sign = "-" if seconds < 0 else ""
    total_ns = round(abs(Fraction(seconds)) * 1_000_000_000)
    if total_ns == 0:
        return "0s"
    for unit, unit_ns in (("ns", 1), ("µs", 1_000), ("ms", 1_000_000)):
        if total_ns < min(unit_ns * 1_000, 1_000_000_000):
            return f"{sign}{_decimal(total_ns, unit_ns)}{unit}"
    minutes, rest_ns = divmod(total_ns, 60_000_000_000)
    hours, minutes = divmod(minutes, 60)
    head = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{head}{_decimal(rest_ns, 1_000_000_000)}s"


def _decimal(value_ns: int, unit_ns: int) -> str:
    integer, fraction = divmod(value_ns, unit_ns)
    digits = f"{fraction:0{len(str(unit_ns)) - 1}d}".rstrip("0") if fraction else ""
    return f"{integer}.{digits}" if digits else str(integer)
