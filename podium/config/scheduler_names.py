"""Finds the scheduler name of which an unknown one may be a misspelling."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from typing import Final

from podium.config.types import DEFAULT_SCHEDULER_NAME

NAME_SHOWN_MAX: Final = 100
_SIMILARITY_MIN: Final = 0.8


def similar_name(name: str, candidates: Collection[str]) -> str | None:
    """Return the candidate that the name resembles most; None if it resembles none, or is a candidate itself."""
    if name in candidates or name == DEFAULT_SCHEDULER_NAME:
        return None
    candidate_by_plain_form = {_plain_form(candidate): candidate for candidate in candidates}
    matches = difflib.get_close_matches(
        _plain_form(name[:NAME_SHOWN_MAX]), candidate_by_plain_form, n=1, cutoff=_SIMILARITY_MIN
    )
    return candidate_by_plain_form[matches[0]] if matches else None


def _plain_form(name: str) -> str:
    return re.sub(r"[\s_.]+", "-", name.strip().lower())
