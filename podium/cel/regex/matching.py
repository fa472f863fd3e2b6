"""Match a text with a compiled pattern.

`search` is a DFA whose states, sets of instructions, are built on demand and cached. `find` keeps the instructions in
order of preference, each with the start of its match.
Thread-safe: the cache is only extended or replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Final, TypeAlias

from podium.cel.errors import CostLimitError
from podium.cel.regex.program import Assert, Instruction, Match, Split, Step, instructions
from podium.cel.regex.syntax import Reader

_TRANSITIONS_MAX = 20_000
_STEPS_MAX = 100_000
"""A search with more steps than this, some hundredths of a second, ends the evaluation."""
_EDGE, _NEWLINE, _WORD, _OTHER = "edge", "newline", "word", "other"
_WORD_CHARACTERS = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")

NO_LIMIT: Final = 1 << 62
_steps_left: ContextVar[int] = ContextVar("steps_left", default=NO_LIMIT)

Span: TypeAlias = tuple[int, int]


def limit_steps(steps: int) -> None:
    """End the evaluation from now on if all searches together may need more steps."""
    _steps_left.set(steps)


def steps_left() -> int:
    """Return the remaining steps of the limit."""
    return _steps_left.get()


class _State:
    """A DFA state: the possible instructions after a character, and the kind of that character."""

    __slots__ = ("at_end", "following", "pending", "previous")

    def __init__(self, pending: frozenset[int], previous: str) -> None:
        self.pending = pending
        self.previous = previous
        self.following: dict[str, _State | None] = {}
        self.at_end: bool | None = None


class Pattern:
    """A compiled pattern."""

    def __init__(self, code: tuple[Instruction, ...], start: int) -> None:
        self._code = code
        self._start = start
        self._upkeep = 1 + len(code) // 2  # instructions that lead on without consuming a character
        self._reset()

    def _reset(self) -> None:
        self._states: dict[tuple[frozenset[int], str], _State] = {}
        self._transitions = 0
        self._initial = self._state(frozenset(), _EDGE)

    def search(self, text: str) -> bool:
        """Tell whether the pattern matches anywhere. Raises: CostLimitError: it takes too long to know."""
        self._spend(len(text))
        state = self._initial
        steps = 0
        # Cached transitions need no steps: the same texts are searched again for each device.
        for character in text:
            following = state.following.get(character, state)
            if following is state and character not in state.following:
                steps += len(state.pending) + self._upkeep
                if steps > _STEPS_MAX:
                    raise _too_long()
                following = self._follow(state, character)
            if following is None:
                return True
            state = following
        if state.at_end is None:
            indexes = self._closure((*state.pending, self._start), _assertions(state.previous, _EDGE), set())
            state.at_end = any(type(self._code[index]) is Match for index in indexes)
        return state.at_end

    def _spend(self, characters: int) -> None:
        """Take the steps that a search may need, whatever is cached: the same evaluation always takes the same."""
        steps = _steps_left.get() - len(self._code) * characters
        if steps < 0:
            raise _too_long()
        _steps_left.set(steps)

    def _follow(self, state: _State, character: str) -> _State | None:
        """Return the state after a character; None if the pattern has matched before it."""
        following = _kind(character)
        pending = set()
        next_state: _State | None = None
        for index in self._closure((*state.pending, self._start), _assertions(state.previous, following), set()):
            instruction = self._code[index]
            if type(instruction) is Match:
                break
            if type(instruction) is Step and instruction.characters.contains(character):
                pending.add(instruction.successor)
        else:
            next_state = self._state(frozenset(pending), following)
        self._transitions += 1
        # A text with many different characters fills the cache; starting again is cheaper than bookkeeping.
        if self._transitions > _TRANSITIONS_MAX:
            self._reset()
        state.following[character] = next_state
        return next_state

    def _state(self, pending: frozenset[int], previous: str) -> _State:
        key = (pending, previous)
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = _State(pending, previous)
        return state

    def _closure(self, starts: Iterable[int], assertions: frozenset[str], visited: set[int]) -> list[int]:
        """Return the unvisited instructions that wait for a character or have matched, in order of preference."""
        indexes = []
        # On a stack of its own, as patterns nest deeper than Python's recursion goes.
        stack = [*starts][::-1]
        while stack:
            index = stack.pop()
            if index in visited:
                continue
            visited.add(index)
            instruction = self._code[index]
            if type(instruction) is Split:
                stack.append(instruction.second)
                stack.append(instruction.first)
            elif type(instruction) is Assert:
                if instruction.assertion in assertions:
                    stack.append(instruction.successor)
            else:
                indexes.append(index)
        return indexes

    def find(self, text: str, start: int = 0) -> Span | None:
        """Return the first match of the pattern, and of all matches with that start the preferred one.

        Raises: CostLimitError: it takes too long to know.
        """
        return self._find(text, start, [0])

    def find_all(self, text: str, limit: int = -1) -> Iterator[Span]:
        """Yield all successive matches. An empty match directly after another match is left out.

        Raises: CostLimitError: it takes too long to know.
        """
        position, last_end, steps = 0, -1, [0]
        while position <= len(text) and limit != 0:
            span = self._find(text, position, steps)
            if span is None:
                return
            # As Go: an empty match right after a match is none, or `a*` would match twice at each place.
            if span[1] != position or span[0] != last_end:
                limit -= 1
                yield span
            position = span[1] if span[1] > position else position + 1
            last_end = span[1]

    def _find(self, text: str, start: int, steps: list[int]) -> Span | None:
        self._spend(len(text) - start)
        threads: list[tuple[int, int]] = []
        span: Span | None = None
        previous = _kind(text[start - 1]) if start else _EDGE
        for position in range(start, len(text) + 1):
            # Leftmost: once there is a match, no later start can be preferred.
            if span is None:
                threads.append((self._start, position))
            elif not threads:
                break
            character = text[position] if position < len(text) else ""
            following = _kind(character) if character else _EDGE
            steps[0] += len(threads) + self._upkeep
            if steps[0] > _STEPS_MAX:
                raise _too_long()
            threads, match_start = self._advance(threads, _assertions(previous, following), character)
            if match_start is not None:
                span = (match_start, position)
            previous = following
        return span

    def _advance(
        self, threads: list[tuple[int, int]], assertions: frozenset[str], character: str
    ) -> tuple[list[tuple[int, int]], int | None]:
        """Return the threads after a character, and the start of a match before it. A match drops later threads."""
        following: list[tuple[int, int]] = []
        visited: set[int] = set()
        for start, begin in threads:
            for index in self._closure((start,), assertions, visited):
                instruction = self._code[index]
                # Threads that follow are less preferred, and end here.
                if type(instruction) is Match:
                    return following, begin
                if type(instruction) is Step and character and instruction.characters.contains(character):
                    following.append((instruction.successor, begin))
        return following, None


def compile_pattern(text: str) -> Pattern:
    """Compile a pattern. Raises: PatternError."""
    return Pattern(*instructions(Reader(text).read()))


def _too_long() -> CostLimitError:
    return CostLimitError("the regular expression takes too long on this text")


def _kind(character: str) -> str:
    if character in _WORD_CHARACTERS:
        return _WORD
    return _NEWLINE if character == "\n" else _OTHER


def _assertions(previous: str, following: str) -> frozenset[str]:
    return _HOLDING[previous, following]


def _holding(previous: str, following: str) -> Iterator[str]:
    if previous == _EDGE:
        yield "begin"
    if previous in (_EDGE, _NEWLINE):
        yield "begin of line"
    if following == _EDGE:
        yield "end"
    if following in (_EDGE, _NEWLINE):
        yield "end of line"
    yield "word boundary" if (previous == _WORD) != (following == _WORD) else "no word boundary"


_KINDS = (_EDGE, _NEWLINE, _WORD, _OTHER)
_HOLDING = {
    (previous, following): frozenset(_holding(previous, following)) for previous in _KINDS for following in _KINDS
}
