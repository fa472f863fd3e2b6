from __future__ import annotations

import asyncio

import pytest

from podium.daemon.held_tasks import HeldTasks

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_tasks_begin_in_their_order_and_others_run_in_between() -> None:
    story: list[int | str] = []
    held_tasks = HeldTasks()

    async def begin(number: int) -> None:
        story.append(number)

    async def look() -> None:
        while len(story) < 40:
            story.append("others")
            await asyncio.sleep(0)

    for number in range(40):
        held_tasks.create_task(begin(number), name="binding cycle")
    assert story == []
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(look())
        await held_tasks.start(tasks)
    assert [entry for entry in story if entry != "others"] == [*range(40)]
    first, last = story.index(0), story.index(39)
    assert "others" in story[first:last]


async def test_tasks_that_are_not_started_any_more_are_closed() -> None:
    story: list[int] = []
    held_tasks = HeldTasks()

    async def begin(number: int) -> None:
        story.append(number)

    for number in range(40):
        held_tasks.create_task(begin(number))
    starting = asyncio.ensure_future(start_in_a_group(held_tasks))
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    # A coroutine that is neither awaited nor closed is a warning, which fails the test.
    assert len(story) < 40


async def start_in_a_group(held_tasks: HeldTasks) -> None:
    async with asyncio.TaskGroup() as tasks:
        await held_tasks.start(tasks)
