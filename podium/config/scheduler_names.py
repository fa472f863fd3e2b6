"""Suggests podium's scheduler names that resemble a pod's unknown one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from typing import Final

from podium.config.types import DEFAULT_SCHEDULER_NAME

NAME_SHOWN_MAX: Final = 100
_SIMILAR: Final = 0.8


def similar_name(name: str, ours: Collection[str]) -> str | None:
    """Return the name of `ours` that resembles the name; None if there is no such name, or if it is among them."""
    if name in ours or name == DEFAULT_SCHEDULER_NAME:
        return None
    by_plain = {_plain(own_name): own_name for own_name in ours}
    matches = difflib.get_close_matches(_plain(name[:NAME_SHOWN_MAX]), by_plain, n=1, cutoff=_SIMILAR)
    return by_plain[matches[0]] if matches else None


def _plain(name: str) -> str:
    return re.sub(r"[\s_.]+", "-", name.strip().lower())
