"""The median of measurements that are rows of the same kind."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import fields
from statistics import median
from typing import Any, TypeVar

RowT = TypeVar("RowT")


def medians(rows: Iterable[RowT], key: Callable[[RowT], Hashable]) -> list[RowT]:
    """One row for each key, in the order of the first ones; each figure is the median of its own.

    What the rows of a key have in common, such as names, stays as it is.
    """
    groups: dict[Hashable, list[RowT]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return [_middle(group) for group in groups.values()]


def _middle(group: Sequence[RowT]) -> RowT:
    first = group[0]
    columns = {column.name: [getattr(row, column.name) for row in group] for column in fields(first)}  # type: ignore[arg-type]
    return type(first)(**{name: _median(values) for name, values in columns.items()})


def _median(values: Sequence[Any]) -> Any:
    is_common = all(value == values[0] for value in values)
    return values[0] if is_common else median(values)
