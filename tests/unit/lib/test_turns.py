from __future__ import annotations

from itertools import pairwise

import anyio
import pytest

from podium.lib.clock import ManualClock
from podium.lib.turns import Turns
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


async def test_others_run_after_a_few_milliseconds_of_work_and_not_before() -> None:
    clock = ManualClock()
    ends_of_others: list[int] = []
    ends: list[int] = []

    async def other() -> None:
        ends_of_others.append(milliseconds)

    async with anyio.create_task_group() as tasks:
        turns = Turns(clock)
        tasks.start_soon(other)
        for milliseconds in range(1, 20):
            clock.advance(0.001)
            if turns.is_over():
                ends.append(milliseconds)
                await turns.next()
    assert ends_of_others == ends[:1]
    assert len(ends) == 3
    assert all(5 <= later - earlier <= 6 for earlier, later in pairwise((0, *ends)))
