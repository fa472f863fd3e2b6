"""The releases that CHANGELOG.md names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

CHANGELOG: Final = Path(__file__).parents[1] / "CHANGELOG.md"
UNRELEASED: Final = "Unreleased"
_HEADING: Final = re.compile(r"^## (?P<version>[0-9.]+) \((?P<date>[0-9-]+), (?P<commit>[0-9a-f]{8})\)$", re.MULTILINE)


class PastRelease(NamedTuple):
    """A release that was made.

    Attributes:
        date: as in 2026-11-22.
        commit: the first eight digits of the hash.
    """

    version: str
    date: str
    commit: str

    @property
    def numbers(self) -> tuple[int, ...]:
        """The version as numbers, which can be compared."""
        return tuple(int(number) for number in self.version.split("."))


def past_releases(text: str) -> list[PastRelease]:
    """Return the releases that a changelog names, newest first."""
    return [PastRelease(**match.groupdict()) for match in _HEADING.finditer(text)]
