"""Computations that can be interrupted, because they may take longer than the scheduling loop can be held up."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Interruptible: TypeAlias = Generator[None, None, T]
"""A computation that yields where it can be interrupted."""


def uninterrupted(steps: Interruptible[T]) -> T:
    """The result, without interruption."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
