"""Parse a pattern to a syntax tree."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from podium.cel.regex.characters import CODE_MAX, Category, Characters, category, fold_case, invert, single

REPEAT_MAX, NESTING_MAX, LENGTH_MAX = 1000, 250, 100_000


class PatternError(Exception):
    """The pattern is not valid."""


@dataclass(frozen=True, slots=True)
class Empty:
    """Match the empty string: everywhere, or where `assertion` holds."""

    assertion: str = ""


@dataclass(frozen=True, slots=True)
class Sequence:
    """Match several parts in sequence."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Match one of several alternatives. Earlier ones are preferred."""

    branches: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Match a part repeatedly. Without `most` the number is not limited."""

    part: Pattern
    minimum: int
    maximum: int | None
    greedy: bool


Pattern: TypeAlias = Empty | Characters | Sequence | Choice | Repeat

_DIGIT, _SPACE = ((0x30, 0x39),), ((0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20))
_WORD = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_PERL = {"d": _DIGIT, "s": _SPACE, "w": _WORD}
_POSIX = {
    "alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)), "alpha": ((0x41, 0x5A), (0x61, 0x7A)), "ascii": ((0, 0x7F),),
    "blank": ((9, 9), (0x20, 0x20)), "cntrl": ((0, 0x1F), (0x7F, 0x7F)), "digit": _DIGIT, "graph": ((0x21, 0x7E),),
    "lower": ((0x61, 0x7A),), "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ((9, 0xD), (0x20, 0x20)), "upper": ((0x41, 0x5A),), "word": _WORD,
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}  # fmt: skip
_CONTROL = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_ASSERTIONS = {"A": "begin", "z": "end", "b": "word boundary", "B": "no word boundary"}
_COUNT = re.compile(r"\{(\d+)(,(\d*))?\}", re.ASCII)
_GROUP = re.compile(r"\(\?(?:P?<(?P<name>[A-Za-z0-9_]+)>|(?P<on>[imsU]*)(?P<off>-[imsU]+)?(?P<end>[:)]))")
_POSIX_CLASS = re.compile(r"\[:(\^?)(.*?):\]", re.DOTALL)
_HEX = re.compile(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]+)\})")
_OCTAL = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}")
_UNICODE = re.compile(r"([pP])(?:\{(\^?)([^}]*)\}|(.))", re.DOTALL)


@dataclass(slots=True)
class _Group:
    """A group that is still open: its finished branches, the branch being read, and the flags outside."""

    branches: list[Pattern]
    parts: list[Pattern]
    flags: str
    repeated: bool = False


class Reader:
    """Parses one pattern with an explicit stack, so that nesting needs no recursion."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._flags = ""
        self._open = [_Group([], [], "")]

    def read(self) -> Pattern:
        """Parse the pattern. Raises: PatternError."""
        # Reading and matching take memory in proportion to the pattern, whose author need not be trusted.
        if len(self._text) > LENGTH_MAX:
            raise PatternError("the pattern is too long")
        while self._at < len(self._text):
            self._read_one(self._text[self._at])
        if len(self._open) > 1:
            raise PatternError("missing closing )")
        return _close(self._open[0])

    def _read_one(self, character: str) -> None:
        group = self._open[-1]
        match character:
            case "(":
                self._open_group()
            case ")":
                self._close_group()
            case "|":
                self._at += 1
                group.branches.append(_join(group.parts))
                group.parts, group.repeated = [], False
            case "*" | "+" | "?":
                self._at += 1
                self._repeat(*{"*": (0, None), "+": (1, None), "?": (0, 1)}[character])
            case "{" if match := _COUNT.match(self._text, self._at):
                self._at = match.end()
                self._repeat(*_bounds(match))
            case _:
                self._add(self._atom(character))

    def _add(self, part: Pattern) -> None:
        self._open[-1].parts.append(part)
        self._open[-1].repeated = False

    def _open_group(self) -> None:
        if not self._text.startswith("(?", self._at):
            self._at += 1
            self._push(self._flags)
            return
        match = _GROUP.match(self._text, self._at)
        if match is None:
            raise PatternError(f"invalid or unsupported Perl syntax: {self._text[self._at : self._at + 4]!r}")
        self._at = match.end()
        if match["name"]:
            self._push(self._flags)
            return
        # As in Go: a flag that is switched on and off in one group is off.
        flags = "".join(sorted((set(self._flags) | set(match["on"])) - set(match["off"] or "")))
        if match["end"] == ":":
            self._push(self._flags)
        # Without a colon, the flags hold for the rest of the surrounding group.
        self._open[-1].repeated = False
        self._flags = flags

    def _push(self, flags: str) -> None:
        if len(self._open) > NESTING_MAX:
            raise PatternError("expression nests too deeply")
        self._open.append(_Group([], [], flags))

    def _close_group(self) -> None:
        if len(self._open) == 1:
            raise PatternError("unexpected )")
        self._at += 1
        group = self._open.pop()
        self._flags = group.flags
        self._add(_close(group))

    def _repeat(self, minimum: int, maximum: int | None) -> None:
        group = self._open[-1]
        if not group.parts:
            raise PatternError("missing argument to repetition operator")
        if group.repeated:
            raise PatternError("invalid nested repetition operator")
        lazy = self._text.startswith("?", self._at)
        self._at += lazy
        if (maximum is not None and maximum < minimum) or max(minimum, maximum or 0) > REPEAT_MAX:
            raise PatternError("invalid repeat count")
        part = Repeat(group.parts.pop(), minimum, maximum, greedy=lazy == ("U" in self._flags))
        # As RE2: nested counts multiply, and `((a{100}){100}){100}` would need a million instructions.
        if _copies(part) > REPEAT_MAX:
            raise PatternError("invalid repeat count")
        group.parts.append(part)
        group.repeated = True

    def _atom(self, character: str) -> Pattern:
        self._at += 1
        match character:
            case "[":
                return self._class()
            case ".":
                return Characters(() if "s" in self._flags else ((10, 10),), negated=True)
            case "^":
                return Empty("begin of line" if "m" in self._flags else "begin")
            case "$":
                return Empty("end of line" if "m" in self._flags else "end")
            case "\\":
                return self._escape()
        return single(character, fold="i" in self._flags)

    def _escape(self) -> Pattern:
        following = self._text[self._at : self._at + 1]
        if following in _ASSERTIONS:
            self._at += 1
            return Empty(_ASSERTIONS[following])
        if following == "Q":
            end = self._text.find("\\E", self._at)
            # RE2 quotes up to the end of the pattern if \E is missing.
            quoted = self._text[self._at + 1 : end if end >= 0 else None]
            self._at = end + 2 if end >= 0 else len(self._text)
            return self._literal(quoted)
        shared_class = self._shared_class()
        if shared_class is not None:
            return shared_class
        return single(chr(self._escaped_code()), fold="i" in self._flags)

    def _literal(self, text: str) -> Pattern:
        characters = [single(character, fold="i" in self._flags) for character in text]
        for character in characters[:-1]:
            self._add(character)
        return characters[-1] if characters else Empty()

    def _shared_class(self) -> Characters | None:
        """Parse a class such as digits or letters, which may occur within brackets or outside."""
        following = self._text[self._at : self._at + 1]
        if following and following in "dswDSW":
            self._at += 1
            ranges = self._fold(_PERL[following.lower()])
            return Characters(invert(ranges) if following.isupper() else ranges)
        if not following or following not in "pP":
            return None
        match = _UNICODE.match(self._text, self._at)
        if match is None:
            raise PatternError("invalid character class range")
        self._at = match.end()
        name = match[3] if match[3] is not None else match[4]
        # Folding is done by the category, whose members are too many to fold one by one.
        members = category(name, negated=(match[1] == "P") != bool(match[2]), fold="i" in self._flags)
        if members is None:
            raise PatternError(f"unknown or unsupported character class: \\{match[0]}")
        return Characters((), (members,))

    def _escaped_code(self) -> int:
        following = self._text[self._at : self._at + 1]
        if match := _HEX.match(self._text, self._at):
            self._at = match.end()
            digits = match[1] or match[2].lstrip("0")
            # No need to compute a number of thousands of digits to see that it is too large.
            code = int(digits or "0", 16) if len(digits) <= 6 else CODE_MAX + 1
        elif match := _OCTAL.match(self._text, self._at):
            self._at = match.end()
            code = int(match[0], 8)
        elif following in _CONTROL:
            self._at += 1
            code = _CONTROL[following]
        elif following and following.isascii() and not following.isalnum():
            self._at += 1
            code = ord(following)
        else:
            raise PatternError(f"invalid escape sequence: \\{following}" if following else "trailing backslash")
        if code > CODE_MAX:
            raise PatternError("invalid escape sequence")
        return code

    def _fold(self, ranges: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        return fold_case(ranges) if "i" in self._flags else ranges

    def _class(self) -> Characters:
        negated = self._text.startswith("^", self._at)
        self._at += negated
        ranges: list[tuple[int, int]] = []
        categories: list[Category] = []
        first = True
        # The first ] stands for itself, as in POSIX.
        while first or not self._text.startswith("]", self._at):
            if self._at >= len(self._text):
                raise PatternError("missing closing ]")
            self._class_item(ranges, categories)
            first = False
        self._at += 1
        return Characters(tuple(ranges), tuple(categories), negated)

    def _class_item(self, ranges: list[tuple[int, int]], categories: list[Category]) -> None:
        if match := _POSIX_CLASS.match(self._text, self._at):
            if match[2] not in _POSIX:
                raise PatternError(f"invalid character class range: {match[0]}")
            self._at = match.end()
            class_ranges = self._fold(_POSIX[match[2]])
            ranges.extend(invert(class_ranges) if match[1] else class_ranges)
            return
        if self._text.startswith("\\", self._at):
            self._at += 1
            shared_class = self._shared_class()
            if shared_class is not None:
                ranges.extend(shared_class.ranges)
                categories.extend(shared_class.categories)
                return
            self._at -= 1
        low = high = self._class_code()
        # A minus before the closing bracket stands for itself.
        if self._text.startswith("-", self._at) and not self._text.startswith("-]", self._at):
            self._at += 1
            high = self._class_code()
        if high < low:
            raise PatternError("invalid character class range")
        ranges.extend(self._fold(((low, high),)))

    def _class_code(self) -> int:
        if self._at >= len(self._text):
            raise PatternError("missing closing ]")
        character = self._text[self._at]
        self._at += 1
        return self._escaped_code() if character == "\\" else ord(character)


def _bounds(match: re.Match[str]) -> tuple[int, int | None]:
    """Return the bounds of `{2}`, `{2,}` and `{2,3}`."""
    numbers = [
        # Python refuses to convert more than 4,300 digits, with another error.
        int(digits) if len(digits.lstrip("0")) <= 4 else REPEAT_MAX + 1
        for digits in (match[1], match[3])
        if digits
    ]
    if match[2] is None:
        return numbers[0], numbers[0]
    return numbers[0], numbers[1] if len(numbers) == 2 else None


def _join(parts: list[Pattern]) -> Pattern:
    if not parts:
        return Empty()
    return parts[0] if len(parts) == 1 else Sequence(tuple(parts))


def _close(group: _Group) -> Pattern:
    last = _join(group.parts)
    return Choice((*group.branches, last)) if group.branches else last


def _copies(pattern: Pattern) -> int:
    """Return the number of copies of the innermost counted part."""
    match pattern:
        case Repeat():
            count = pattern.maximum if pattern.maximum is not None else pattern.minimum
            return max(count, 1) * _copies(pattern.part)
        case Sequence():
            return max(map(_copies, pattern.parts))
        case Choice():
            return max(map(_copies, pattern.branches))
    return 1
