"""Cuts an answer down to a size, and says in it what was cut."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from podium.cli.output import as_json

_LENGTHS: Final = (1000, 300, 100, 30, 10, 3, 1)
_TEXT_PER_ENTRY: Final = 200
_TEXT_MIN: Final = 400
_PLACES_MAX: Final = 20


def cut_to_size(answer: Mapping[str, Any], bytes_max: int) -> dict[str, Any]:
    """Return the answer with as many entries of each list and mapping as fit; `cut` of it says what is left out.

    Args:
        bytes_max: the size of the answer as JSON, at least 2000.
    """
    size = len(as_json(answer))
    if size <= bytes_max:
        return dict(answer)
    for length in _LENGTHS:
        places: dict[str, int] = {}
        shortened = {name: _shorten(value, length, name, places) for name, value in answer.items()}
        note = f"The answer had {size} bytes, more than {bytes_max}: at most {length} entries of each list are shown"
        shortened["cut"] = {"note": note, "totals": dict(list(places.items())[:_PLACES_MAX])}
        if len(as_json(shortened)) <= bytes_max:
            return shortened
    return {
        "cut": {"note": f"The answer has {size} bytes, more than {bytes_max}, and cannot be shortened: ask for less"}
    }


def _shorten(value: Any, length: int, place: str, places: dict[str, int]) -> Any:
    """Return the value with lists, mappings and texts cut to this length; record the original lengths by place."""
    if isinstance(value, Mapping):
        if len(value) > length and not _is_record(value):
            places[place] = len(value)
            value = dict(list(value.items())[:length])
        return {name: _shorten(part, length, f"{place}.{name}", places) for name, part in value.items()}
    if isinstance(value, list | tuple):
        if len(value) > length:
            places[place] = len(value)
        return [_shorten(part, length, f"{place}[]", places) for part in value[:length]]
    if isinstance(value, str) and len(value) > (text_max := max(length * _TEXT_PER_ENTRY, _TEXT_MIN)):
        places[place] = len(value)
        return value[:text_max]
    return value


def _is_record(value: Mapping[str, Any]) -> bool:
    """Return whether the mapping has named fields of various kinds, and no entries that are alike."""
    return len({type(part) for part in value.values()}) > 1 and len(value) <= _PLACES_MAX
