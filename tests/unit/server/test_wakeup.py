from __future__ import annotations

import anyio
import pytest

from podium.server.wakeup import WakeUp
from tests.virtual_time import VIRTUAL_TIME, LoopClock

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


async def waited_s(bell: WakeUp, seconds_max: float | None) -> float:
    clock = LoopClock()
    started_s = clock.monotonic()
    await bell.wait(seconds_max)
    return clock.monotonic() - started_s


async def test_a_ring_before_the_wait_is_heard_once() -> None:
    bell = WakeUp()
    bell.set()
    bell.set()
    assert await waited_s(bell, 10.0) == 0.0
    assert await waited_s(bell, 10.0) == 10.0


async def test_a_ring_during_the_wait_ends_it() -> None:
    bell = WakeUp()

    async def set_later() -> None:
        await anyio.sleep(3.0)
        bell.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(set_later)
        assert await waited_s(bell, None) == 3.0


async def test_a_wait_for_no_time_lets_others_run() -> None:
    bell = WakeUp()
    ran: list[bool] = []

    async def run() -> None:
        ran.append(True)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        assert await waited_s(bell, 0.0) == 0.0
    assert ran == [True]
