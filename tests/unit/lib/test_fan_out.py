from __future__ import annotations

from podium.lib.fan_out import FanOut


class Observer:
    def on_begin(self, name: str) -> None:
        """Nothing."""

    def on_end(self, name: str, times: int = 1) -> None:
        """Nothing."""


class Keeps(Observer):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_end(self, name: str, times: int = 1) -> None:
        self.heard.append(name * times)


class KeepsByAttribute(Observer):
    def __init__(self) -> None:
        self.heard: list[str] = []
        self.on_begin = self.heard.append  # type: ignore[method-assign,assignment]


def test_without_observers_nothing_happens() -> None:
    FanOut(Observer).observer.on_end("a", times=2)


def test_a_single_listener_is_called_directly() -> None:
    keeps, by_attribute = Keeps(), KeepsByAttribute()
    observer = FanOut[Observer](Observer, keeps, by_attribute).observer
    assert observer.on_end == keeps.on_end
    assert observer.on_begin == by_attribute.heard.append
    observer.on_end("a", times=2)
    observer.on_begin("b")
    assert (keeps.heard, by_attribute.heard) == (["aa"], ["b"])


def test_several_hear_each_report_in_the_order_in_which_they_were_added() -> None:
    first, second = Keeps(), Keeps()
    second.heard = first.heard
    reports = FanOut[Observer](Observer, first)
    reports.add(second)
    reports.observer.on_end("a")
    reports.observer.on_begin("b")
    assert first.heard == ["a", "a"]


def test_who_holds_the_observer_reports_to_those_that_are_added_later() -> None:
    late, reports = Keeps(), FanOut(Observer)
    observer = reports.observer
    reports.add(late)
    observer.on_end("a")
    assert late.heard == ["a"]
