"""Compile the syntax tree of a pattern to instructions."""

from __future__ import annotations

from typing import NamedTuple

from podium.cel.regex.characters import Characters
from podium.cel.regex.syntax import Choice, Empty, Pattern, PatternError, Repeat, Sequence

INSTRUCTIONS_MAX = 5_000


class Step(NamedTuple):
    """Consume one character of a set."""

    characters: Characters
    successor: int


class Assert(NamedTuple):
    """Continue if an assertion holds."""

    assertion: str
    successor: int


class Split(NamedTuple):
    """Continue at two instructions, of which the first is preferred."""

    first: int
    second: int


class Match(NamedTuple):
    """The pattern has matched."""


Instruction = Step | Assert | Split | Match


def instructions(pattern: Pattern) -> tuple[tuple[Instruction, ...], int]:
    """Return the instructions of a pattern, and the index of the first one. They are built from the end to the start.

    Raises: PatternError: there are too many instructions.
    """
    builder = _Builder()
    start = builder.build(pattern, builder.add(Match()))
    return tuple(builder.code), start


class _Builder:
    def __init__(self) -> None:
        self.code: list[Instruction] = []

    def add(self, instruction: Instruction) -> int:
        # Here, before counts are unrolled in full: `x{1000}` copies its part a thousand times.
        if len(self.code) >= INSTRUCTIONS_MAX:
            raise PatternError("expression too large")
        self.code.append(instruction)
        return len(self.code) - 1

    def build(self, pattern: Pattern, successor: int) -> int:
        """Add the instructions of a pattern that continues at `successor`, and return the index of the first one."""
        match pattern:
            case Characters():
                return self.add(Step(pattern, successor))
            case Empty():
                return self.add(Assert(pattern.assertion, successor)) if pattern.assertion else successor
            case Sequence():
                for part in reversed(pattern.parts):
                    successor = self.build(part, successor)
                return successor
            case Choice():
                *starts, start = [self.build(branch, successor) for branch in reversed(pattern.branches)][::-1]
                for branch_start in reversed(starts):
                    start = self.add(Split(branch_start, start))
                return start
            case Repeat():
                return self._repeat(pattern, successor)

    def _repeat(self, pattern: Repeat, successor: int) -> int:
        if pattern.maximum is None:
            start = self._loop(pattern, successor)
            copies = pattern.minimum - 1
        else:
            start = successor
            for _ in range(pattern.maximum - pattern.minimum):
                start = self._choice(self.build(pattern.part, start), successor, greedy=pattern.greedy)
            copies = pattern.minimum
        for _ in range(copies):
            start = self.build(pattern.part, start)
        return start

    def _loop(self, pattern: Repeat, successor: int) -> int:
        """Compile `x+`, or `x*` if the minimum is 0."""
        # A placeholder, because the loop's own start must be known to its body.
        loop_start = self.add(Match())
        body = self.build(pattern.part, loop_start)
        self.code[loop_start] = _split(body, successor, greedy=pattern.greedy)
        if pattern.minimum:
            return body
        # A part that may be empty is tried once before the loop, so that `(|a)*` prefers the empty string.
        return self._choice(body, successor, greedy=pattern.greedy) if _may_be_empty(pattern.part) else loop_start

    def _choice(self, body: int, successor: int, *, greedy: bool) -> int:
        return self.add(_split(body, successor, greedy=greedy))


def _split(body: int, successor: int, *, greedy: bool) -> Split:
    return Split(body, successor) if greedy else Split(successor, body)


def _may_be_empty(pattern: Pattern) -> bool:
    match pattern:
        case Empty():
            return True
        case Sequence():
            return all(map(_may_be_empty, pattern.parts))
        case Choice():
            return any(map(_may_be_empty, pattern.branches))
        case Repeat():
            return pattern.minimum == 0 or _may_be_empty(pattern.part)
    return False
