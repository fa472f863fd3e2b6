"""Loops. Each macro has its own implementation, since the general form would copy the result in every step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from podium.cel.errors import EvaluationError, no_such_overload
from podium.cel.frame import COST_SLOT, Frame, Run, charge
from podium.cel.values import check_size, from_key, key_of, type_name

_ALL_COSTS, _EXISTS_COSTS = (2, 1), (3, 1)


class _Failure:
    """The error of a bound value, kept so that the value is not computed again."""

    __slots__ = ("error",)

    def __init__(self, error: EvaluationError) -> None:
        self.error = error


_UNSET = object()


def elements(iterable: Any) -> Iterable[Any]:
    """Return the values that a loop with one variable iterates over: the elements of a list or the keys of a map.

    Raises: EvaluationError.
    """
    if type(iterable) is list:
        return iterable
    if isinstance(iterable, dict):
        return [from_key(key) for key in iterable]
    raise EvaluationError(f"got '{type_name(iterable)}', expected iterable type")


def pairs(iterable: Any) -> Iterable[tuple[Any, Any]]:
    """Return the pairs that a loop with two variables iterates over: indexes and elements, or keys and values.

    Raises: EvaluationError.
    """
    if type(iterable) is list:
        return enumerate(iterable)
    if isinstance(iterable, dict):
        return [(from_key(key), value) for key, value in iterable.items()]
    raise EvaluationError(f"unsupported comprehension range type: {type_name(iterable)}")


class Loop:
    """The common part of all loops: the range and the iteration variables."""

    __slots__ = ("counts_costs", "first", "iterable", "second")

    def __init__(self, iterable: Run, first: int, second: int | None, *, counts_costs: bool) -> None:
        self.iterable = iterable
        self.first = first
        self.second = second
        self.counts_costs = counts_costs

    def iterate(self, frame: Frame) -> Iterator[None]:
        """Iterate over the range and set the variables."""
        values = self.iterable(frame)
        first, second = self.first, self.second
        if second is None:
            for value in elements(values):
                frame[first] = value
                yield
            return
        for frame[first], frame[second] in pairs(values):
            yield


def quantifier(loop: Loop, predicate: Run, deciding: bool) -> Run:
    """Compile `exists` (deciding: True) or `all` (False): the first deciding iteration absorbs earlier errors."""
    per_check, per_turn = _EXISTS_COSTS if deciding else _ALL_COSTS

    def run(frame: Frame) -> Any:
        failure: EvaluationError | None = None
        turns = loop.iterate(frame)
        for _ in turns:
            # Before the predicate, since upstream checks the condition of the loop first.
            if loop.counts_costs:
                charge(frame, per_check + per_turn)
            try:
                value = predicate(frame)
            except EvaluationError as error:
                # As in `||`: an error counts only if no iteration decides.
                failure = failure or error
                continue
            if value is deciding:
                if loop.counts_costs:
                    _charge_exit(frame, turns, per_check)
                return deciding
            if value is not (not deciding):
                failure = failure or no_such_overload("_||_" if deciding else "_&&_")
        if loop.counts_costs:
            charge(frame, 1)
        if failure is not None:
            raise failure
        return not deciding

    return run


def _charge_exit(frame: Frame, turns: Iterator[None], per_check: int) -> None:
    """Charge for the check that ends the loop: upstream does it at the start of the next iteration, if there is one."""
    charge(frame, 1 + (per_check if any(True for _ in turns) else 0))


def exactly_one(loop: Loop, predicate: Run) -> Run:
    """Compile `exists_one`, which is true if the predicate holds for exactly one element."""

    def run(frame: Frame) -> bool:
        count = 0
        for _ in loop.iterate(frame):
            if _as_bool(predicate(frame)):
                count += 1
                if loop.counts_costs:
                    charge(frame, 2)
        return count == 1

    return run


def collect(loop: Loop, predicate: Run | None, element: Run, cost: int) -> Run:
    """Compile `map`, `filter` and `transformList`, which build a list."""

    def run(frame: Frame) -> list[Any]:
        result: list[Any] = []
        for _ in loop.iterate(frame):
            if predicate is not None and not _as_bool(predicate(frame)):
                continue
            result.append(element(frame))
            if loop.counts_costs:
                charge(frame, cost)
        return list(check_size(result))

    return run


def insert_entries(loop: Loop, predicate: Run | None, key: Run, value: Run) -> Run:
    """Compile `transformMap`: each iteration adds a value under a key to a new map."""

    def run(frame: Frame) -> dict[Any, Any]:
        entries: dict[Any, Any] = {}
        for _ in _iterate_if(loop, predicate, frame):
            place = key_of(key(frame))
            if place is None:
                raise EvaluationError("unsupported key type")
            _insert(entries, place, value(frame))
        return entries

    return run


def insert_maps(loop: Loop, predicate: Run | None, entries: Run) -> Run:
    """Compile `transformMapEntry`: each iteration adds the entries of another map to a new map."""

    def run(frame: Frame) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for _ in _iterate_if(loop, predicate, frame):
            insertion = entries(frame)
            if not isinstance(insertion, dict):
                raise no_such_overload("cel.@mapInsert")
            for key, value in insertion.items():
                _insert(result, key, value)
        return result

    return run


def _iterate_if(loop: Loop, predicate: Run | None, frame: Frame) -> Iterable[None]:
    """Yield the iterations of a loop for which its predicate holds."""
    for _ in loop.iterate(frame):
        if loop.counts_costs:
            charge(frame, 2)
        if predicate is None or _as_bool(predicate(frame)):
            yield


def _insert(entries: dict[Any, Any], key: Any, value: Any) -> None:
    if key in entries:
        raise EvaluationError(f"insert failed: key {from_key(key)} already exists")
    entries[key] = value


def bind(slot: int, result: Run) -> Run:
    """Compile `cel.bind`. The value of the bound name is computed on its first read."""

    def run(frame: Frame) -> Any:
        # Lazily, as in cel-go: a bound value that is never read neither fails nor costs.
        frame[slot] = _UNSET
        return result(frame)

    return run


def bound_name(slot: int, value: Run) -> Run:
    """Compile a read of a name that `cel.bind` has bound."""

    def run(frame: Frame) -> Any:
        state = frame[slot]
        if state is _UNSET:
            try:
                state = value(frame)
            except EvaluationError as error:
                frame[slot] = _Failure(error)
                raise
            frame[slot] = state
        elif type(state) is _Failure:
            raise state.error
        return state

    return run


def repeated_name(slot: int, value: Run) -> Run:
    """Compile a read of the target of `optMap`, which is computed once, and charged for on every read."""

    def run(frame: Frame) -> Any:
        if frame[slot] is _UNSET:
            cost_before = frame[COST_SLOT]
            target = value(frame)
            frame[slot] = target, frame[COST_SLOT] - cost_before
            return target
        target, cost = frame[slot]
        # Upstream repeats the target's expression, and evaluates it each time.
        charge(frame, cost)
        return target

    return run


def _as_bool(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise no_such_overload("_?_:_")
