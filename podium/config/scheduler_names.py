"""Names of schedulers that may have been meant by others."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from typing import Final

from podium.config.types import DEFAULT_SCHEDULER_NAME

NAME_SHOWN_MAX: Final = 100
_SIMILAR: Final = 0.8


def similar_name(name: str, ours: Collection[str]) -> str | None:
    """The name of podium's that may have been meant; None if the name is one of them or resembles none of them."""
    if name in ours or name == DEFAULT_SCHEDULER_NAME:
        return None
    by_plain = {_plain(each): each for each in ours}
    found = difflib.get_close_matches(_plain(name[:NAME_SHOWN_MAX]), by_plain, n=1, cutoff=_SIMILAR)
    return by_plain[found[0]] if found else None


def _plain(name: str) -> str:
    return re.sub(r"[\s_.]+", "-", name.strip().lower())
