"""Computations that can be interrupted, because they may take longer than the scheduling loop can be held up."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Work: TypeAlias = Callable[[], None]
"""A part of a computation that takes long. It may be done in a thread; otherwise the computation does it itself."""

Interruptible: TypeAlias = Generator[Work | None, None, T]
"""A computation that yields where it can be interrupted: the work that comes next, or None."""


def run_uninterrupted(steps: Interruptible[T]) -> T:
    """Return the result, without interruption."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
