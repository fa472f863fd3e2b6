"""The watchdog with a real thread and a real event loop, whose deadlines are milliseconds instead of seconds."""

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

SHORT_S = 0.05


@pytest.fixture(autouse=True)
def quick_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "_LOOK_EVERY_S", 0.005)


class FakeExit:
    """Records how the process would have been ended."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.armed_s: list[float] = []

    def end(self, status: int) -> None:
        self.status = status


@contextmanager
def running_watchdog(
    fake_exit: FakeExit, metrics: Metrics, stuck_s: float = SHORT_S, stop_s_max: float = 60.0
) -> Iterator[Watchdog]:
    dog = Watchdog(metrics, stuck_s=stuck_s, stop_s_max=stop_s_max, end=fake_exit.end, arm=fake_exit.armed_s.append)
    with dog.watching():
        yield dog
    # Otherwise the next test captures the last lines of this thread.
    for thread in threading.enumerate():
        if thread.name == "watchdog":
            thread.join(PATIENCE_S)


def block_until(condition: Callable[[], object]) -> None:
    """Block the event loop until the condition holds, as a plugin does that never returns."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "the condition does not hold"
        time.sleep(0.001)


async def wait_until(condition: Callable[[], object]) -> None:
    """Let the event loop run until the condition holds."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "the condition does not hold"
        await asyncio.sleep(0.001)


def lines_of(logs: list[Any], message: str) -> list[Any]:
    return [line for line in logs if line["event"] == message]


def test_a_stuck_loop_is_logged_once_with_its_stack_and_again_when_it_responds() -> None:
    metrics = Metrics()

    async def main() -> None:
        with capture_logs() as logs, running_watchdog(FakeExit(), metrics):
            block_until(lambda: lines_of(logs, "The event loop is stuck"))
            await wait_until(lambda: lines_of(logs, "The event loop responds again"))
            (line,) = lines_of(logs, "The event loop is stuck")
            assert "block_until" in line["stack"]
            assert line["plugin"] == ""

    asyncio.run(main())
    assert metrics.value("podium_loop_stuck_total", plugin="", extension_point="") == 1


def test_a_responding_loop_is_not_logged() -> None:
    async def main() -> None:
        with capture_logs() as logs, running_watchdog(FakeExit(), Metrics(), stuck_s=20.0) as dog:
            answer_count = 0

            def count() -> None:
                nonlocal answer_count
                answer_count += 1

            note_answer = dog._note_answer
            dog._note_answer = lambda: (count(), note_answer())  # type: ignore[assignment, func-returns-value]
            await wait_until(lambda: answer_count > 10)
        assert not logs

    asyncio.run(main())


def test_a_stuck_process_that_is_asked_to_stop_exits_with_1_at_its_deadline_and_logs_it() -> None:
    fake_exit = FakeExit()

    async def main() -> None:
        with capture_logs() as logs, running_watchdog(fake_exit, Metrics(), stop_s_max=SHORT_S) as dog:
            dog.stop_requested()
            block_until(lambda: fake_exit.status is not None)
            assert lines_of(logs, "Still running after the stop deadline: exiting")

    asyncio.run(main())
    assert fake_exit.status == 1
    assert len(fake_exit.armed_s) == 1


def test_a_stuck_process_that_is_asked_twice_to_stop_exits_at_once() -> None:
    fake_exit = FakeExit()

    async def main() -> None:
        with capture_logs() as logs, running_watchdog(fake_exit, Metrics(), stop_s_max=10_000.0) as dog:
            dog.stop_requested()
            block_until(lambda: lines_of(logs, "The event loop is stuck"))
            assert fake_exit.status is None
            dog.stop_requested()
            block_until(lambda: fake_exit.status is not None)

    asyncio.run(main())
    assert fake_exit.status == 1


def test_a_process_that_stops_in_time_is_not_ended() -> None:
    fake_exit = FakeExit()

    async def main() -> None:
        with running_watchdog(fake_exit, Metrics(), stop_s_max=SHORT_S) as dog:
            dog.stop_requested()

    asyncio.run(main())
    assert fake_exit.status is None


class FakeStandIn:
    def __init__(self) -> None:
        self.is_answering = threading.Event()
        self.is_done = threading.Event()

    def answer_until(self, is_over: Callable[[], bool]) -> None:
        self.is_answering.set()
        while not is_over():
            time.sleep(0.001)
        self.is_done.set()


def test_probes_are_answered_by_the_stand_in_while_the_loop_is_stuck() -> None:
    async def main() -> None:
        with capture_logs(), running_watchdog(FakeExit(), Metrics()) as dog:
            stand_in = FakeStandIn()
            dog.stand_in(stand_in)
            block_until(stand_in.is_answering.is_set)
            assert not stand_in.is_done.is_set()
            await wait_until(stand_in.is_done.is_set)

    asyncio.run(main())


def test_a_loop_is_not_stuck_if_the_whole_process_was_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    jump_s = 0.0

    class JumpingClock:
        """The clock of a process that was suspended for a long time."""

        @staticmethod
        def monotonic() -> float:
            return time.monotonic() + jump_s

    monkeypatch.setattr(watchdog, "time", JumpingClock)

    async def main() -> None:
        nonlocal jump_s
        with capture_logs() as logs, running_watchdog(FakeExit(), Metrics(), stuck_s=1000.0) as dog:
            for _ in range(20):
                # The clock jumps while a ping is unanswered.
                block_until(lambda: dog._asked_s is not None)
                jump_s += 5000.0
                await wait_until(lambda: dog._asked_s is None)
        assert not logs

    asyncio.run(main())
