"""A real thread and a real loop, with bounds of milliseconds instead of seconds."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from podium.daemon import watchdog
from podium.daemon.watchdog import Watchdog
from podium.telemetry import Metrics
from tests.patience import PATIENCE_S

SOON_S = 0.05


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "_LOOK_EVERY_S", 0.005)


class Ended:
    """Takes the place of the end of the process."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.armed: list[float] = []

    def end(self, status: int) -> None:
        self.status = status


@contextmanager
def watched(ended: Ended, metrics: Metrics, stuck_s: float = SOON_S, stop_s_max: float = 60.0) -> Iterator[Watchdog]:
    dog = Watchdog(metrics, stuck_s=stuck_s, stop_s_max=stop_s_max, end=ended.end, arm=ended.armed.append)
    with dog.watching():
        yield dog
    # What a thread still logs would be taken for a line of the next test's.
    for thread in threading.enumerate():
        if thread.name == "watchdog":
            thread.join(PATIENCE_S)


def block_until(happened: Callable[[], object]) -> None:
    """Keep the loop, as a plugin might that never returns."""
    ends_s = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < ends_s, "nothing has happened"
        time.sleep(0.001)


async def until(happened: Callable[[], object]) -> None:
    """Let the loop go on until it has."""
    ends_s = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < ends_s, "nothing has happened"
        await asyncio.sleep(0.001)


def said(logs: list[Any], words: str) -> list[Any]:
    return [each for each in logs if each["event"] == words]


def test_a_stuck_loop_is_told_once_with_its_stack_and_again_when_it_goes_on() -> None:
    metrics = Metrics()

    async def main() -> None:
        with capture_logs() as logs, watched(Ended(), metrics):
            block_until(lambda: said(logs, "The event loop is stuck"))
            await until(lambda: said(logs, "The event loop responds again"))
            (line,) = said(logs, "The event loop is stuck")
            assert "block_until" in line["stack"]
            assert line["plugin"] == ""

    asyncio.run(main())
    assert metrics.value("podium_loop_stuck_total", plugin="", extension_point="") == 1


def test_a_loop_that_answers_is_not_told_of() -> None:
    async def main() -> None:
        with capture_logs() as logs, watched(Ended(), Metrics(), stuck_s=20.0) as dog:
            seen = 0

            def count() -> None:
                nonlocal seen
                seen += 1

            answered = dog._note_answer
            dog._note_answer = lambda: (count(), answered())  # type: ignore[assignment, func-returns-value]
            await until(lambda: seen > 10)
        assert not logs

    asyncio.run(main())


def test_a_stuck_process_that_is_told_to_stop_ends_with_1_after_its_time_and_says_so() -> None:
    ended = Ended()

    async def main() -> None:
        with capture_logs() as logs, watched(ended, Metrics(), stop_s_max=SOON_S) as dog:
            dog.stop_requested()
            block_until(lambda: ended.status is not None)
            assert said(logs, "Still running after the stop deadline: exiting")

    asyncio.run(main())
    assert ended.status == 1
    assert len(ended.armed) == 1


def test_a_stuck_process_that_is_told_twice_ends_at_once() -> None:
    ended = Ended()

    async def main() -> None:
        with capture_logs() as logs, watched(ended, Metrics(), stop_s_max=10_000.0) as dog:
            dog.stop_requested()
            block_until(lambda: said(logs, "The event loop is stuck"))
            assert ended.status is None
            dog.stop_requested()
            block_until(lambda: ended.status is not None)

    asyncio.run(main())
    assert ended.status == 1


def test_a_process_that_stops_in_time_is_left_alone() -> None:
    ended = Ended()

    async def main() -> None:
        with watched(ended, Metrics(), stop_s_max=SOON_S) as dog:
            dog.stop_requested()

    asyncio.run(main())
    assert ended.status is None


class StandIn:
    def __init__(self) -> None:
        self.asked = threading.Event()
        self.is_done = threading.Event()

    def answer_until(self, is_over: Callable[[], bool]) -> None:
        self.asked.set()
        while not is_over():
            time.sleep(0.001)
        self.is_done.set()


def test_probes_are_answered_by_the_stand_in_while_the_loop_is_stuck() -> None:
    async def main() -> None:
        with capture_logs(), watched(Ended(), Metrics()) as dog:
            stand_in = StandIn()
            dog.stand_in(stand_in)
            block_until(stand_in.asked.is_set)
            assert not stand_in.is_done.is_set()
            await until(stand_in.is_done.is_set)

    asyncio.run(main())


def test_a_process_that_stood_still_as_a_whole_is_not_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    later_s = 0.0

    class Jumping:
        """The clock of a process that was stopped, and continued much later."""

        @staticmethod
        def monotonic() -> float:
            return time.monotonic() + later_s

    monkeypatch.setattr(watchdog, "time", Jumping)

    async def main() -> None:
        nonlocal later_s
        with capture_logs() as logs, watched(Ended(), Metrics(), stuck_s=1000.0) as dog:
            for _ in range(20):
                # In the midst of a question that the loop has not come to answer.
                block_until(lambda: dog._asked_s is not None)
                later_s += 5000.0
                await until(lambda: dog._asked_s is None)
        assert not logs

    asyncio.run(main())
