"""Compile the syntax tree of a pattern to instructions."""

from __future__ import annotations

from typing import NamedTuple

from podium.cel.regex.characters import Characters
from podium.cel.regex.syntax import Choice, Empty, Pattern, PatternError, Repeat, Sequence

INSTRUCTIONS_MAX = 5_000


class Step(NamedTuple):
    """Consume one character of a set."""

    characters: Characters
    then: int


class Assert(NamedTuple):
    """Continue if an assertion holds."""

    assertion: str
    then: int


class Split(NamedTuple):
    """Continue at two instructions, of which the first is preferred."""

    first: int
    second: int


class Match(NamedTuple):
    """The pattern has matched."""


Instruction = Step | Assert | Split | Match


def instructions(pattern: Pattern) -> tuple[tuple[Instruction, ...], int]:
    """The instructions of a pattern, and the index of the first one. They are built from the end to the start.

    Raises: PatternError: there are too many instructions.
    """
    builder = _Builder()
    start = builder.build(pattern, builder.add(Match()))
    return tuple(builder.code), start


class _Builder:
    def __init__(self) -> None:
        self.code: list[Instruction] = []

    def add(self, instruction: Instruction) -> int:
        if len(self.code) >= INSTRUCTIONS_MAX:
            raise PatternError("expression too large")
        self.code.append(instruction)
        return len(self.code) - 1

    def build(self, pattern: Pattern, then: int) -> int:
        """Add the instructions of a pattern that continues at `then`, and return the index of the first one."""
        match pattern:
            case Characters():
                return self.add(Step(pattern, then))
            case Empty():
                return self.add(Assert(pattern.assertion, then)) if pattern.assertion else then
            case Sequence():
                for part in reversed(pattern.parts):
                    then = self.build(part, then)
                return then
            case Choice():
                *others, start = [self.build(branch, then) for branch in reversed(pattern.branches)][::-1]
                for other in reversed(others):
                    start = self.add(Split(other, start))
                return start
            case Repeat():
                return self._repeat(pattern, then)

    def _repeat(self, pattern: Repeat, then: int) -> int:
        if pattern.most is None:
            start = self._loop(pattern, then)
            copies = pattern.least - 1
        else:
            start = then
            for _ in range(pattern.most - pattern.least):
                start = self._choice(self.build(pattern.part, start), then, greedy=pattern.greedy)
            copies = pattern.least
        for _ in range(copies):
            start = self.build(pattern.part, start)
        return start

    def _loop(self, pattern: Repeat, then: int) -> int:
        """`x+`, or `x*` if the minimum is 0."""
        again = self.add(Match())
        body = self.build(pattern.part, again)
        self.code[again] = _split(body, then, greedy=pattern.greedy)
        if pattern.least:
            return body
        # A part that may be empty is tried once before the loop, so that `(|a)*` prefers the empty string.
        return self._choice(body, then, greedy=pattern.greedy) if _may_be_empty(pattern.part) else again

    def _choice(self, body: int, then: int, *, greedy: bool) -> int:
        return self.add(_split(body, then, greedy=greedy))


def _split(body: int, then: int, *, greedy: bool) -> Split:
    return Split(body, then) if greedy else Split(then, body)


def _may_be_empty(pattern: Pattern) -> bool:
    match pattern:
        case Empty():
            return True
        case Sequence():
            return all(map(_may_be_empty, pattern.parts))
        case Choice():
            return any(map(_may_be_empty, pattern.branches))
        case Repeat():
            return pattern.least == 0 or _may_be_empty(pattern.part)
    return False
