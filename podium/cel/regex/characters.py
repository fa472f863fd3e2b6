"""Sets of characters: ranges, Unicode categories, and their extension for case-insensitive matching."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

CODE_MAX = 0x10FFFF
_CATEGORIES = frozenset(
    {
        *("C", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No"),
        *("P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs"),
    }
)
_CASED_BLOCKS = (
    (0x41, 0x587), (0x10A0, 0x10FF), (0x13A0, 0x13FF), (0x1C80, 0x1CBF), (0x1D79, 0x1D8E), (0x1E00, 0x1FFF),
    (0x2126, 0x2188), (0x24B6, 0x24E9), (0x2C00, 0x2D2D), (0xA640, 0xA7FF), (0xAB53, 0xABBF), (0xFF21, 0xFF5A),
    (0x10400, 0x104FB), (0x10570, 0x105BC), (0x10C80, 0x10CF2), (0x118A0, 0x118DF), (0x16E40, 0x16E7F),
    (0x1E900, 0x1E943),
)  # fmt: skip


class Category(NamedTuple):
    """A Unicode category: one or two letters, or empty for any character."""

    name: str
    negated: bool
    fold: bool

    def holds(self, character: str) -> bool:
        """Tell whether a character, or one that differs from it only by case, is in the category."""
        forms = {character, *character.lower(), *character.upper()} if self.fold else character
        return any(unicodedata.category(form).startswith(self.name) for form in forms) != self.negated


class Characters(NamedTuple):
    """A set of characters: those in any of its ranges or categories, or, if negated, those in none of them."""

    ranges: tuple[tuple[int, int], ...]
    categories: tuple[Category, ...] = ()
    negated: bool = False

    def contains(self, character: str) -> bool:
        """Tell whether a character is in the set."""
        code = ord(character)
        is_member = any(low <= code <= high for low, high in self.ranges) or any(
            category.holds(character) for category in self.categories
        )
        return is_member != self.negated


def single(character: str, *, fold: bool) -> Characters:
    """Return the set of one character, with `fold` including those that differ from it only by case."""
    ranges = ((ord(character), ord(character)),)
    return Characters(fold_case(ranges) if fold else ranges)


def category(name: str, *, negated: bool, fold: bool) -> Category | None:
    """Find a category by its name in a pattern; None if it does not exist."""
    if name == "Any":
        return Category("", negated, fold)
    return Category(name, negated, fold) if name in _CATEGORIES else None


def invert(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the ranges of all other characters."""
    gaps, start = [], 0
    for low, high in sorted(ranges):
        if low > start:
            gaps.append((start, low - 1))
        start = max(start, high + 1)
    return tuple([*gaps, (start, CODE_MAX)] if start <= CODE_MAX else gaps)


def fold_case(ranges: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Return the ranges, extended by every character that differs from one of theirs only by case."""
    additions: set[int] = set()
    for members in _orbits():
        if any(low <= code <= high for low, high in ranges for code in members):
            additions |= members
    return ranges + tuple((code, code) for code in sorted(additions))


@functools.cache
def _orbits() -> tuple[frozenset[int], ...]:
    """Return the groups of characters that differ only by case."""
    groups: dict[str, set[int]] = {}
    for first, last in _CASED_BLOCKS:
        for code in range(first, last + 1):
            character = chr(code)
            key = character.upper().lower() if len(character.upper()) == 1 else character.lower()
            if len(key) == 1:
                groups.setdefault(key, set()).add(code)
    return tuple(frozenset(members) for members in groups.values() if len(members) > 1)
