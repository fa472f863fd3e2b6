from __future__ import annotations

from podium.lib.fan_out import FanOut


class Observer:
    def began(self, what: str) -> None:
        """Nothing."""

    def ended(self, what: str, times: int = 1) -> None:
        """Nothing."""


class Keeps(Observer):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def ended(self, what: str, times: int = 1) -> None:
        self.heard.append(what * times)


class KeepsByAttribute(Observer):
    def __init__(self) -> None:
        self.heard: list[str] = []
        self.began = self.heard.append  # type: ignore[method-assign,assignment]


def test_without_observers_nothing_happens() -> None:
    FanOut(Observer).observer.ended("a", times=2)


def test_a_single_listener_is_called_directly() -> None:
    keeps, other = Keeps(), KeepsByAttribute()
    observer = FanOut[Observer](Observer, keeps, other).observer
    assert observer.ended == keeps.ended
    assert observer.began == other.heard.append
    observer.ended("a", times=2)
    observer.began("b")
    assert (keeps.heard, other.heard) == (["aa"], ["b"])


def test_several_hear_each_report_in_the_order_in_which_they_were_added() -> None:
    first, second = Keeps(), Keeps()
    second.heard = first.heard
    reports = FanOut[Observer](Observer, first)
    reports.add(second)
    reports.observer.ended("a")
    reports.observer.began("b")
    assert first.heard == ["a", "a"]


def test_who_holds_the_observer_reports_to_those_that_are_added_later() -> None:
    late, reports = Keeps(), FanOut(Observer)
    held = reports.observer
    reports.add(late)
    held.ended("a")
    assert late.heard == ["a"]
