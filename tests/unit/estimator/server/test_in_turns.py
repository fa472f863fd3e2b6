"""Estimates in steps take turns with everything else."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from podium.estimator.accurate import EstimateSteps
from podium.estimator.server.in_turns import QUESTION_S_MAX, InTurns
from podium.lib.clock import ManualClock
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


class _Work:
    """EstimateSteps of a millisecond each; whether they are under way is noted."""

    def __init__(self, clock: ManualClock, steps: int) -> None:
        self._clock = clock
        self._steps = steps
        self.under_way = 0
        self.most_under_way = 0

    def begin(self, is_over: Callable[[], bool]) -> EstimateSteps:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            for number in range(self._steps):
                if is_over():
                    return number
                self._clock.advance(0.001)
                yield
            return self._steps
        finally:
            self.under_way -= 1


async def test_others_run_in_between_and_questions_to_one_cluster_follow_each_other() -> None:
    clock = ManualClock()
    work, turns = _Work(clock, 100), 0
    runner, milliseconds = InTurns(clock), list[int]()

    async def ask() -> None:
        milliseconds.append(await runner.run("m1", work.begin))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        group.start_soon(ask)
        while len(milliseconds) < 2:
            turns += 1
            await anyio.lowlevel.checkpoint()
    assert milliseconds == [100, 100]
    assert work.most_under_way == 1
    assert turns >= 30


async def test_question_ends_in_time_and_waiting_for_its_turn_counts() -> None:
    clock = ManualClock()
    runner, milliseconds = InTurns(clock), list[int]()
    work = _Work(clock, 10_000)

    async def ask() -> None:
        milliseconds.append(await runner.run("m1", work.begin))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        group.start_soon(ask)
    assert milliseconds == [pytest.approx(QUESTION_S_MAX * 1000, abs=2), 0]


async def test_question_that_nobody_waits_for_any_more_is_given_up_and_leaves_the_cluster_to_others() -> None:
    clock = ManualClock()
    runner, work = InTurns(clock), _Work(clock, 1_000)
    async with anyio.create_task_group() as group:
        group.start_soon(runner.run, "m1", work.begin)
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        assert work.under_way == 1
        group.cancel_scope.cancel()
    assert work.under_way == 0
    assert await runner.run("m1", _Work(clock, 3).begin) == 3
