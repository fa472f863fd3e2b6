"""Forwards each report to several observers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

ObserverT = TypeVar("ObserverT")


class FanOut(Generic[ObserverT]):
    """Hands out one observer that forwards every report to the added observers.

    A kind of observer is a class whose public methods do nothing; an observer overrides those that it needs.
    Observers must not raise.

    Attributes:
        observer: receives the reports; an instance of the kind itself.

    Cost: zero for a report that only one observer overrides: its method is called directly.
    """

    def __init__(self, kind: type[ObserverT], *observers: ObserverT) -> None:
        self.observer: ObserverT = kind()
        self._kind = kind
        self._observers: list[ObserverT] = []
        for observer in observers:
            self.add(observer)

    def add(self, observer: ObserverT) -> None:
        """Add an observer; it is called after the existing ones."""
        self._observers.append(observer)
        for name in dir(self._kind):
            if not name.startswith("_") and (listeners := self._listeners(name)):
                setattr(self.observer, name, _to_all(listeners))

    def _listeners(self, name: str) -> list[Callable[..., None]]:
        """Return the observers' methods of that name that override the kind's."""
        silent = getattr(self._kind, name)
        methods = (getattr(observer, name) for observer in self._observers)
        return [method for method in methods if getattr(method, "__func__", method) is not silent]


def _to_all(listeners: list[Callable[..., None]]) -> Callable[..., None]:
    if len(listeners) == 1:
        return listeners[0]

    def report(*args: Any, **kwargs: Any) -> None:
        for listener in listeners:
            listener(*args, **kwargs)

    return report
