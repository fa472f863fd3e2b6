"""The state that plugins pass from one extension point to the next within one scheduling attempt.

Source: kubernetes pkg/scheduler/framework/cycle_state.go, v1.36.2.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

from podium.framework.contract.status import PluginError
from podium.lib.error_text import error_text

T = TypeVar("T")


@cache
def cloner(kind: type) -> Callable[[Any], object] | None:
    """Return the `clone` method of a state that dry runs change and must copy, or None for types without one.

    Cost: a look-up after the first call for a type; a dry run calls it for every node.
    """
    return getattr(kind, "clone", None)


class CycleState:
    """Values by type. Each plugin defines a class for its state, and that class is the key.

    Attributes:
        dry_runs: begins a `dry_runs.NodeDryRun` on the node of a row; None while no attempt is under way.

    Invariant: a value without `clone` is never changed once written.
    """

    __slots__ = ("_values", "dry_runs", "skipped_filters", "skipped_scores")

    def __init__(self) -> None:
        self._values: dict[type, object] = {}
        self.skipped_filters: frozenset[str] = frozenset()
        self.skipped_scores: frozenset[str] = frozenset()
        self.dry_runs: Callable[[int], AbstractContextManager[Any]] | None = None

    def dry_run(self, row: int) -> AbstractContextManager[Any]:
        """As `podium.framework.Handle.dry_run`."""
        if self.dry_runs is None:
            raise PluginError("handle.dry_run: no attempt is under way with this state")
        return self.dry_runs(row)

    def write(self, *values: object) -> None:
        """Store each value under its type."""
        for value in values:
            self._values[type(value)] = value

    def read(self, kind: type[T]) -> T:
        """Return the value of that type.

        Raises:
            KeyError: nothing of that type was written in this attempt.
        """
        value = self._values[kind]
        assert isinstance(value, kind)
        return value

    def find(self, kind: type[T]) -> T | None:
        """Return the value of that type, None if there is none."""
        value = self._values.get(kind)
        return value if isinstance(value, kind) else None

    def values(self) -> tuple[object, ...]:
        """Return all values written in this attempt."""
        return tuple(self._values.values())

    def clone(self) -> CycleState:
        """Return a copy for a dry run.

        Raises:
            PluginError: a plugin's value cannot be copied.
        """
        twin = CycleState()
        twin.skipped_filters, twin.skipped_scores = self.skipped_filters, self.skipped_scores
        try:
            twin._values = {
                kind: value if (clone := cloner(kind)) is None else clone(value) for kind, value in self._values.items()
            }
        except BaseException as error:
            raise self._not_cloned(error) from error
        return twin

    def _not_cloned(self, error: BaseException) -> PluginError:
        """Return the error for a failed copy.

        It lists the classes of all values, because which plugin owns the value is not known.
        """
        kinds = ", ".join(f"{kind.__module__}.{kind.__qualname__}" for kind in self._values if cloner(kind) is not None)
        return PluginError(f"copying the state for a dry run, one of {kinds}: {error_text(error)}")
