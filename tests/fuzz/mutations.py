"""Hostile values, and changes of a JSON tree that put them anywhere in it.

A mutation names its place by a number, counted around the places that the tree has, so that every number is of use.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from hypothesis import strategies as st

Json = Any
T = TypeVar("T")
Mutation = Callable[[Json], Json]
"""Changes the tree that it is given, and returns it."""

OBJECT_BYTES_MAX: Final = 1_500_000
"""What etcd takes of one object, so that no larger one ever arrives."""

_TEXTS: Final = (
    "",
    " ",
    "\x00",
    "\ud7ff\ufffd\U0001f4a5",
    "é" * 300,
    "a" * 70_000,
    "In",
    "Exists",
    "Gt",
    "DoNotSchedule",
    "Always",
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "metadata.name",
    "-1",
    "1e4000",
    "1e-4000",
    "9" * 1000,
    "0." + "0" * 900 + "1",
    "9223372036854775808m",
    "1Ei1",
    "../../etc/passwd",
    "%s%n{0}",
)
_NUMBERS: Final = (0, -1, 1, 2**31, -(2**31) - 1, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**400, 0.1, -0.0, 1e308)


def one_of(choices: Sequence[T]) -> st.SearchStrategy[T]:
    """As `sampled_from`, for what is too long to be shown."""
    return st.integers(0, len(choices) - 1).map(lambda index: choices[index])


def scalars() -> st.SearchStrategy[Json]:
    """What may stand where another scalar was expected."""
    return st.one_of(
        one_of(_TEXTS),
        one_of(_NUMBERS),
        st.sampled_from((None, True, False)),
        st.text(max_size=20),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
    )


def values() -> st.SearchStrategy[Json]:
    """Scalars, and small or deep containers of them."""
    nested = st.builds(_nest, st.integers(1, 3000), st.booleans(), scalars())
    small = st.one_of(st.lists(scalars(), max_size=4), st.dictionaries(st.text(max_size=5), scalars(), max_size=4))
    return st.one_of(scalars(), small, nested)


def mutations() -> st.SearchStrategy[Mutation]:
    """One change of a tree."""
    where = st.integers(0, 10_000)
    return st.one_of(
        st.builds(Replaced, where, values()),
        st.builds(Dropped, where),
        st.builds(Repeated, where, st.sampled_from((2, 100, 10_000, 100_000)), st.integers(0, 5)),
        st.builds(Grown, where, st.sampled_from((10, 1000, OBJECT_BYTES_MAX - 100_000))),
        st.builds(Renamed, where, st.one_of(one_of(_TEXTS), st.text(max_size=8))),
        st.builds(Moved, where, where),
    )


def apply(tree: Json, changes: Sequence[Mutation]) -> Json:
    """A copy of the tree, changed, as long as it stays within what an API server would store."""
    tree = copy.deepcopy(tree)
    for change in changes:
        changed_tree = change(copy.deepcopy(tree))
        if len(encode(changed_tree)) <= OBJECT_BYTES_MAX:
            tree = changed_tree
    return tree


def encode(tree: Json) -> bytes:
    """JSON as an API server writes it; nesting is no obstacle."""
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")


def _nest(depth: int, in_lists: bool, core: Json) -> Json:
    # The encoder of the standard library gives up at about a thousand levels.
    for _ in range(depth % 400):
        core = [core] if in_lists else {"a": core}
    return core


def _places(tree: Json) -> Iterator[tuple[Any, Any]]:
    """Every place below the root: its container, and the key or index in that."""
    waiting = [tree]
    while waiting:
        inner = waiting.pop()
        keys = list(inner) if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ()
        for key in keys:
            yield inner, key
            waiting.append(inner[key])


class _Mutation:
    """Shows itself by its arguments, which is what a failure prints."""

    def __init__(self, where: int, *arguments: Any) -> None:
        self._where, self._arguments = where, arguments

    def __repr__(self) -> str:
        arguments = ", ".join(f"{argument!r:.200}" for argument in (self._where, *self._arguments))
        return f"{type(self).__name__}({arguments})"

    def __call__(self, tree: Json) -> Json:
        places = list(_places(tree))
        if places:
            inner, key = places[self._where % len(places)]
            self.change(inner, key, places, *self._arguments)
        return tree

    def change(self, inner: Any, key: Any, places: Sequence[tuple[Any, Any]], *arguments: Any) -> None:
        raise NotImplementedError


class Replaced(_Mutation):
    """Another value stands there."""

    def change(self, inner: Any, key: Any, places: Any, value: Json = None) -> None:
        inner[key] = copy.deepcopy(value)


class Dropped(_Mutation):
    """The value is missing."""

    def change(self, inner: Any, key: Any, places: Any) -> None:
        del inner[key]


class Repeated(_Mutation):
    """The value stands there many times; `varied` says which text in it tells the copies apart."""

    def change(self, inner: Any, key: Any, places: Any, times: int = 2, varied: int = 0) -> None:
        value = inner[key]
        times = min(times, OBJECT_BYTES_MAX // (len(encode(value)) + 10))
        copies = [_with_number(value, number, varied) for number in range(times)]
        if isinstance(inner, list):
            inner[key : key + 1] = copies
        else:
            inner.update((f"{key}-{number}", copy_) for number, copy_ in enumerate(copies))


class Grown(_Mutation):
    """A long text stands there."""

    def change(self, inner: Any, key: Any, places: Any, size: int = 10) -> None:
        text = inner[key] if isinstance(inner[key], str) and inner[key] else "x"
        inner[key] = (text * (size // len(text.encode()) + 1))[:size]


class Renamed(_Mutation):
    """The value is another field's."""

    def change(self, inner: Any, key: Any, places: Any, name: str = "") -> None:
        if isinstance(inner, dict):
            inner[name] = inner.pop(key)


class Moved(_Mutation):
    """What stands elsewhere stands here, too."""

    def change(self, inner: Any, key: Any, places: Any, source: int = 0) -> None:
        from_inner, from_key = places[source % len(places)]
        inner[key] = copy.deepcopy(from_inner[from_key])


def _with_number(value: Json, number: int, varied: int) -> Json:
    """A copy in which one text ends in a number."""
    if isinstance(value, str):
        return f"{value}{number}"
    copy_ = copy.deepcopy(value)
    texts = [(inner, key) for inner, key in _places(copy_) if isinstance(inner[key], str)]
    if texts:
        inner, key = texts[varied % len(texts)]
        inner[key] = f"{inner[key]}{number}"
    return copy_
