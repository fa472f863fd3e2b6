"""What plugins remember from one extension point to the next within one scheduling attempt.

Source: kubernetes pkg/scheduler/framework/cycle_state.go, v1.36.2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from podium.framework.contract.status import PluginError
from podium.lib.error_words import words_of

T = TypeVar("T")


@cache
def cloner(kind: type) -> Callable[[Any], object] | None:
    """The `clone` of state that changes as pods are tried out, of which a dry run needs a copy; None for other types.

    Cost: next to nothing after the first time, since a dry run asks for every node.
    """
    return getattr(kind, "clone", None)


class CycleState:
    """Values by type: a plugin keeps its state in a class of its own, and that class is the key.

    Invariant: a value without `clone` is never changed once written.
    """

    __slots__ = ("_values", "pod_signature", "skipped_filters", "skipped_scores")

    def __init__(self) -> None:
        self._values: dict[type, object] = {}
        self.pod_signature: Any = None
        """What is known of pods like this one; the framework's own."""
        self.skipped_filters: frozenset[str] = frozenset()
        self.skipped_scores: frozenset[str] = frozenset()

    def write(self, *values: object) -> None:
        """Remember each value under its type."""
        for value in values:
            self._values[type(value)] = value

    def read(self, kind: type[T]) -> T:
        """The value of that type.

        Raises:
            KeyError: nothing of that type was written in this attempt.
        """
        value = self._values[kind]
        assert isinstance(value, kind)
        return value

    def find(self, kind: type[T]) -> T | None:
        """The value of that type, None if there is none."""
        value = self._values.get(kind)
        return value if isinstance(value, kind) else None

    def values(self) -> tuple[object, ...]:
        """All that has been written."""
        return tuple(self._values.values())

    def clone(self) -> CycleState:
        """A copy for a dry run.

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
        """Which plugin's value it was is only known by its class."""
        kinds = ", ".join(f"{kind.__module__}.{kind.__qualname__}" for kind in self._values if cloner(kind) is not None)
        return PluginError(f"copying the state for a dry run, one of {kinds}: {words_of(error)}")
