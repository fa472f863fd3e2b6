"""Semantic versions, strictly by version 2.0.0 of the standard unless normalization is requested.

Source: k8s.io/apiserver/pkg/cel v0.36.2 and github.com/blang/semver v4.0.0.
"""

from __future__ import annotations

import functools
import re
from typing import ClassVar

from podium.cel.errors import EvaluationError
from podium.cel.functions import Overload, per_size
from podium.cel.types import SEMVER, Type
from podium.cel.values import UINT_MAX, Opaque

_NUMBER = re.compile(r"0|[1-9][0-9]{0,19}")
_IDENTIFIER = re.compile(r"[0-9A-Za-z-]+")
_DIGITS = re.compile(r"[0-9]+")


class Version(Opaque):
    """A semantic version. Build metadata is validated and then dropped."""

    __slots__ = ("major", "minor", "order", "patch")
    TYPE: ClassVar[Type] = SEMVER
    IS_HASHABLE: ClassVar[bool] = False

    def __init__(self, numbers: tuple[int, int, int], prerelease: tuple[tuple[int, int, str], ...]) -> None:
        self.major, self.minor, self.patch = numbers
        # A version without a prerelease sorts after those with one.
        self.order = (numbers, not prerelease, prerelease)

    def equals(self, value: Version) -> bool:
        """Tell whether both have the same precedence."""
        return self.order == value.order


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> Version:
    """Parse a semantic version. Raises: EvaluationError."""
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvaluationError("No Major.Minor.Patch elements found" if text else "Version string empty")
    core, plus, build = parts[2].partition("+")
    patch, dash, prerelease = core.partition("-")
    if plus and not all(_IDENTIFIER.fullmatch(identifier) for identifier in build.split(".")):
        raise EvaluationError(f"Invalid build meta data {build!r}")
    identifiers = tuple(map(_identifier, prerelease.split("."))) if dash else ()
    return Version((_number(parts[0]), _number(parts[1]), _number(patch)), identifiers)


def _number(text: str) -> int:
    if _NUMBER.fullmatch(text) is None or int(text) > UINT_MAX:
        raise EvaluationError(f"{text!r} is not a number of a version")
    return int(text)


def _identifier(text: str) -> tuple[int, int, str]:
    """Return the sort key of one prerelease identifier. Numbers sort before words."""
    if _IDENTIFIER.fullmatch(text) is None:
        raise EvaluationError(f"Invalid prerelease {text!r}")
    return (0, _number(text), "") if _DIGITS.fullmatch(text) else (1, 0, text)


def _normalize(text: str) -> Version:
    """Parse a version that may have a leading `v`, missing parts at the end, and leading zeros."""
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and ("+" in parts[-1] or "-" in parts[-1]):
        raise EvaluationError("short version cannot contain PreRelease/Build meta data")
    return parse(".".join(parts + ["0"] * (3 - len(parts))))


def _without_zeros(part: str) -> str:
    if len(part) < 2:
        return part
    digits = part.lstrip("0")
    return digits if digits and digits[0] in "0123456789" else f"0{digits}"


def _read(text: str, normalize: bool = False) -> Version:
    return _normalize(text) if normalize else parse(text)


def _is_version(text: str, normalize: bool = False) -> bool:
    try:
        _read(text, normalize)
    except EvaluationError:
        return False
    return True


def _compare(lhs: Version, rhs: Version) -> int:
    return (lhs.order > rhs.order) - (lhs.order < rhs.order)


_PARSING = per_size(0.1, 0)

OVERLOADS = (
    Overload("string_to_semver", "semver(string) -> Semver", _read, _PARSING),
    Overload("string_bool_to_semver", "semver(string, bool) -> Semver", _read, _PARSING),
    Overload("is_semver_string", "isSemver(string) -> bool", _is_version, _PARSING),
    Overload("is_semver_string_bool", "isSemver(string, bool) -> bool", _is_version, _PARSING),
    Overload("semver_is_greater_than", "Semver.isGreaterThan(Semver) -> bool", lambda a, b: a.order > b.order),
    Overload("semver_is_less_than", "Semver.isLessThan(Semver) -> bool", lambda a, b: a.order < b.order),
    Overload("semver_compare_to", "Semver.compareTo(Semver) -> int", _compare),
    Overload("semver_major", "Semver.major() -> int", lambda version: version.major),
    Overload("semver_minor", "Semver.minor() -> int", lambda version: version.minor),
    Overload("semver_patch", "Semver.patch() -> int", lambda version: version.patch),
)
