"""Has several observers hear the reports that are meant for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

ObserverT = TypeVar("ObserverT")


class FanOut(Generic[ObserverT]):
    """Hands out one observer that forwards every report to those that were added.

    A kind of observer is a class whose public methods do nothing; an observer overrides those that it wants to hear.
    Observers must not raise.

    Attributes:
        observer: what reports are sent to; of the kind itself.

    Cost: none for a report that one observer hears: its method is called directly.
    """

    def __init__(self, kind: type[ObserverT], *observers: ObserverT) -> None:
        self.observer: ObserverT = kind()
        self._kind = kind
        self._observers: list[ObserverT] = []
        for each in observers:
            self.add(each)

    def add(self, observer: ObserverT) -> None:
        """Have one more observer hear the reports from now on, after the others."""
        self._observers.append(observer)
        for name in dir(self._kind):
            if not name.startswith("_") and (listeners := self._listeners(name)):
                setattr(self.observer, name, _to_all(listeners))

    def _listeners(self, name: str) -> list[Callable[..., None]]:
        """The methods of that name that do something."""
        silent = getattr(self._kind, name)
        methods = (getattr(each, name) for each in self._observers)
        return [method for method in methods if getattr(method, "__func__", method) is not silent]


def _to_all(listeners: list[Callable[..., None]]) -> Callable[..., None]:
    if len(listeners) == 1:
        return listeners[0]

    def report(*args: Any, **kwargs: Any) -> None:
        for listener in listeners:
            listener(*args, **kwargs)

    return report
