"""The deadlines of many things under way."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from podium.client.deadlines import Deadlines
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return VIRTUAL_TIME


@pytest.fixture
def given_up() -> list[str]:
    return []


@pytest.fixture
async def deadlines(given_up: list[str]) -> Deadlines[str]:
    return Deadlines(given_up.append)


def now_s() -> float:
    return asyncio.get_running_loop().time()


async def test_each_is_given_up_once_and_at_its_own_deadline(deadlines: Deadlines[str], given_up: list[str]) -> None:
    deadlines.start("late", now_s() + 30.0)
    deadlines.start("early", now_s() + 10.0)
    await anyio.sleep(9.0)
    assert given_up == []
    await anyio.sleep(2.0)
    assert given_up == ["early"]
    await anyio.sleep(100.0)
    assert given_up == ["early", "late"]
    assert len(deadlines) == 0


async def test_what_has_ended_is_not_given_up(deadlines: Deadlines[str], given_up: list[str]) -> None:
    deadlines.start("answered", now_s() + 10.0)
    deadlines.start("unanswered", now_s() + 20.0)
    deadlines.end("answered")
    deadlines.end("answered")
    assert list(deadlines) == ["unanswered"]
    await anyio.sleep(100.0)
    assert given_up == ["unanswered"]


async def test_what_begins_after_the_others_have_ended_has_its_deadline(
    deadlines: Deadlines[str], given_up: list[str]
) -> None:
    deadlines.start("first", now_s() + 10.0)
    await anyio.sleep(20.0)
    deadlines.start("second", now_s() + 10.0)
    await anyio.sleep(5.0)
    deadlines.start("third", now_s() + 1.0)
    await anyio.sleep(2.0)
    assert given_up == ["first", "third"]
    await anyio.sleep(5.0)
    assert given_up == ["first", "third", "second"]


async def test_those_with_one_deadline_share_a_timer(deadlines: Deadlines[str], given_up: list[str]) -> None:
    for name in "abc":
        deadlines.start(name, now_s() + 15.0)
    timer = deadlines._timer
    deadlines.start("d", now_s() + 16.0)
    assert deadlines._timer is timer
    await anyio.sleep(60.0)
    assert given_up == ["a", "b", "c", "d"]
