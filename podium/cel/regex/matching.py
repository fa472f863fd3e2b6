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
    """From now on, end the evaluation if all searches together may need more steps."""
    _steps_left.set(steps)


def steps_left() -> int:
    """How many steps of this limit are left."""
    return _steps_left.get()


class _State:
    """A DFA state: the possible instructions after a character, and the kind of that character."""

    __slots__ = ("at_end", "before", "following", "pending")

    def __init__(self, pending: frozenset[int], before: str) -> None:
        self.pending = pending
        self.before = before
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
        """Whether the pattern matches anywhere.

        Raises: CostLimitError: it takes too long to know.
        """
        self._spend(len(text))
        state = self._initial
        steps = 0
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
            reached = self._closure((*state.pending, self._start), _assertions(state.before, _EDGE), set())
            state.at_end = any(type(self._code[each]) is Match for each in reached)
        return state.at_end

    def _spend(self, characters: int) -> None:
        """Take the steps that a search may need, whatever is cached: the same evaluation always takes the same."""
        left = _steps_left.get() - len(self._code) * characters
        if left < 0:
            raise _too_long()
        _steps_left.set(left)

    def _follow(self, state: _State, character: str) -> _State | None:
        """The state after a character; None if the pattern has matched before it."""
        after = _kind(character)
        pending = set()
        found: _State | None = None
        for each in self._closure((*state.pending, self._start), _assertions(state.before, after), set()):
            instruction = self._code[each]
            if type(instruction) is Match:
                break
            if type(instruction) is Step and instruction.characters.contains(character):
                pending.add(instruction.then)
        else:
            found = self._state(frozenset(pending), after)
        self._transitions += 1
        if self._transitions > _TRANSITIONS_MAX:
            self._reset()
        state.following[character] = found
        return found

    def _state(self, pending: frozenset[int], before: str) -> _State:
        key = (pending, before)
        found = self._states.get(key)
        if found is None:
            found = self._states[key] = _State(pending, before)
        return found

    def _closure(self, starts: Iterable[int], assertions: frozenset[str], seen: set[int]) -> list[int]:
        """The instructions that wait for a character or have matched, in order of preference, and are not seen yet."""
        reached = []
        stack = [*starts][::-1]
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            instruction = self._code[at]
            if type(instruction) is Split:
                stack.append(instruction.second)
                stack.append(instruction.first)
            elif type(instruction) is Assert:
                if instruction.assertion in assertions:
                    stack.append(instruction.then)
            else:
                reached.append(at)
        return reached

    def find(self, text: str, start: int = 0) -> Span | None:
        """The first match of the pattern, and of all matches with that start the preferred one.

        Raises: CostLimitError: it takes too long to know.
        """
        return self._find(text, start, [0])

    def find_all(self, text: str, limit: int = -1) -> Iterator[Span]:
        """All successive matches. An empty match directly after another match is left out.

        Raises: CostLimitError: it takes too long to know.
        """
        at, last_end, steps = 0, -1, [0]
        while at <= len(text) and limit != 0:
            span = self._find(text, at, steps)
            if span is None:
                return
            if span[1] != at or span[0] != last_end:
                limit -= 1
                yield span
            at = span[1] if span[1] > at else at + 1
            last_end = span[1]

    def _find(self, text: str, start: int, steps: list[int]) -> Span | None:
        self._spend(len(text) - start)
        threads: list[tuple[int, int]] = []
        found: Span | None = None
        before = _kind(text[start - 1]) if start else _EDGE
        for at in range(start, len(text) + 1):
            if found is None:
                threads.append((self._start, at))
            elif not threads:
                break
            character = text[at] if at < len(text) else ""
            after = _kind(character) if character else _EDGE
            steps[0] += len(threads) + self._upkeep
            if steps[0] > _STEPS_MAX:
                raise _too_long()
            threads, matched = self._advance(threads, _assertions(before, after), character)
            if matched is not None:
                found = (matched, at)
            before = after
        return found

    def _advance(
        self, threads: list[tuple[int, int]], assertions: frozenset[str], character: str
    ) -> tuple[list[tuple[int, int]], int | None]:
        """The threads after a character, and the start of a match that ends before it. A match drops later threads."""
        following: list[tuple[int, int]] = []
        seen: set[int] = set()
        for start, began in threads:
            for at in self._closure((start,), assertions, seen):
                instruction = self._code[at]
                if type(instruction) is Match:
                    return following, began
                if type(instruction) is Step and character and instruction.characters.contains(character):
                    following.append((instruction.then, began))
        return following, None


def compile_pattern(text: str) -> Pattern:
    """Compile a pattern.

    Raises: PatternError.
    """
    return Pattern(*instructions(Reader(text).read()))


def _too_long() -> CostLimitError:
    return CostLimitError("the regular expression takes too long on this text")


def _kind(character: str) -> str:
    if character in _WORD_CHARACTERS:
        return _WORD
    return _NEWLINE if character == "\n" else _OTHER


def _assertions(before: str, after: str) -> frozenset[str]:
    return _HOLDING[before, after]


def _holding(before: str, after: str) -> Iterator[str]:
    if before == _EDGE:
        yield "begin"
    if before in (_EDGE, _NEWLINE):
        yield "begin of line"
    if after == _EDGE:
        yield "end"
    if after in (_EDGE, _NEWLINE):
        yield "end of line"
    yield "word boundary" if (before == _WORD) != (after == _WORD) else "no word boundary"


_KINDS = (_EDGE, _NEWLINE, _WORD, _OTHER)
_HOLDING = {(before, after): frozenset(_holding(before, after)) for before in _KINDS for after in _KINDS}
