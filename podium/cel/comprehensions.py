"""Loops. Each macro has its own implementation, since the general form would copy the result in every step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from podium.cel.errors import EvaluationError, no_such_overload
from podium.cel.frame import COST_SLOT, Frame, Run, charge
from podium.cel.values import bounded, from_key, key_of, type_name

_ALL_COSTS, _EXISTS_COSTS = (2, 1), (3, 1)


class _Failure:
    """The error of a bound value, kept so that the value is not computed again."""

    __slots__ = ("error",)

    def __init__(self, error: EvaluationError) -> None:
        self.error = error


_UNSET = object()


def elements(held: Any) -> Iterable[Any]:
    """The values that a loop with one variable iterates over: the elements of a list or the keys of a map.

    Raises: EvaluationError.
    """
    if type(held) is list:
        return held
    if isinstance(held, dict):
        return [from_key(key) for key in held]
    raise EvaluationError(f"got '{type_name(held)}', expected iterable type")


def pairs(held: Any) -> Iterable[tuple[Any, Any]]:
    """The pairs that a loop with two variables iterates over: indexes and elements, or keys and values.

    Raises: EvaluationError.
    """
    if type(held) is list:
        return enumerate(held)
    if isinstance(held, dict):
        return [(from_key(key), value) for key, value in held.items()]
    raise EvaluationError(f"unsupported comprehension range type: {type_name(held)}")


class Loop:
    """The common part of all loops: the range and the iteration variables."""

    __slots__ = ("first", "iterated", "second", "tracked")

    def __init__(self, iterated: Run, first: int, second: int | None, *, tracked: bool) -> None:
        self.iterated = iterated
        self.first = first
        self.second = second
        self.tracked = tracked

    def each(self, frame: Frame) -> Iterator[None]:
        """Iterate over the range and set the variables."""
        held = self.iterated(frame)
        first, second = self.first, self.second
        if second is None:
            for value in elements(held):
                frame[first] = value
                yield
            return
        for frame[first], frame[second] in pairs(held):
            yield


def quantifier(loop: Loop, predicate: Run, deciding: bool) -> Run:
    """`exists` (deciding: True) or `all` (False): the first deciding iteration ends it and absorbs earlier errors."""
    per_check, per_turn = _EXISTS_COSTS if deciding else _ALL_COSTS

    def run(frame: Frame) -> Any:
        failure: EvaluationError | None = None
        turns = loop.each(frame)
        for _ in turns:
            if loop.tracked:
                charge(frame, per_check + per_turn)
            try:
                value = predicate(frame)
            except EvaluationError as error:
                failure = failure or error
                continue
            if value is deciding:
                if loop.tracked:
                    _charge_exit(frame, turns, per_check)
                return deciding
            if value is not (not deciding):
                failure = failure or no_such_overload("_||_" if deciding else "_&&_")
        if loop.tracked:
            charge(frame, 1)
        if failure is not None:
            raise failure
        return not deciding

    return run


def _charge_exit(frame: Frame, turns: Iterator[None], per_check: int) -> None:
    """Charge for the check that ends the loop: upstream does it at the start of the next iteration, if there is one."""
    charge(frame, 1 + (per_check if any(True for _ in turns) else 0))


def exactly_one(loop: Loop, predicate: Run) -> Run:
    """`exists_one`: whether the predicate holds for exactly one element."""

    def run(frame: Frame) -> bool:
        count = 0
        for _ in loop.each(frame):
            if _decided(predicate(frame)):
                count += 1
                if loop.tracked:
                    charge(frame, 2)
        return count == 1

    return run


def collected(loop: Loop, predicate: Run | None, element: Run, cost: int) -> Run:
    """`map`, `filter` and `transformList`: a new list."""

    def run(frame: Frame) -> list[Any]:
        found: list[Any] = []
        for _ in loop.each(frame):
            if predicate is not None and not _decided(predicate(frame)):
                continue
            found.append(element(frame))
            if loop.tracked:
                charge(frame, cost)
        return list(bounded(found))

    return run


def inserted_entries(loop: Loop, predicate: Run | None, key: Run, value: Run) -> Run:
    """`transformMap`: a new map. Each iteration adds a value under a key."""

    def run(frame: Frame) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for _ in _chosen(loop, predicate, frame):
            place = key_of(key(frame))
            if place is None:
                raise EvaluationError("unsupported key type")
            _insert(found, place, value(frame))
        return found

    return run


def inserted_maps(loop: Loop, predicate: Run | None, entries: Run) -> Run:
    """`transformMapEntry`: a new map. Each iteration adds the entries of another map."""

    def run(frame: Frame) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for _ in _chosen(loop, predicate, frame):
            added = entries(frame)
            if not isinstance(added, dict):
                raise no_such_overload("cel.@mapInsert")
            for key, value in added.items():
                _insert(found, key, value)
        return found

    return run


def _chosen(loop: Loop, predicate: Run | None, frame: Frame) -> Iterable[None]:
    """The iterations of a loop for which its predicate holds."""
    for _ in loop.each(frame):
        if loop.tracked:
            charge(frame, 2)
        if predicate is None or _decided(predicate(frame)):
            yield


def _insert(found: dict[Any, Any], key: Any, value: Any) -> None:
    if key in found:
        raise EvaluationError(f"insert failed: key {from_key(key)} already exists")
    found[key] = value


def bound(slot: int, result: Run) -> Run:
    """`cel.bind`: an expression with a bound name, whose value is computed on its first read."""

    def run(frame: Frame) -> Any:
        frame[slot] = _UNSET
        return result(frame)

    return run


def bound_name(slot: int, value: Run) -> Run:
    """A read of a name that `cel.bind` has bound."""

    def run(frame: Frame) -> Any:
        held = frame[slot]
        if held is _UNSET:
            try:
                held = value(frame)
            except EvaluationError as error:
                frame[slot] = _Failure(error)
                raise
            frame[slot] = held
        elif type(held) is _Failure:
            raise held.error
        return held

    return run


def repeated_name(slot: int, value: Run) -> Run:
    """A read of the target of `optMap`. It is computed once, and charged for on every read."""

    def run(frame: Frame) -> Any:
        if frame[slot] is _UNSET:
            before = frame[COST_SLOT]
            held = value(frame)
            frame[slot] = held, frame[COST_SLOT] - before
            return held
        held, cost = frame[slot]
        charge(frame, cost)
        return held

    return run


def _decided(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise no_such_overload("_?_:_")
