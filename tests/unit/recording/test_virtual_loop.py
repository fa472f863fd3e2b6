"""A loop in virtual time, given up on before its end."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from podium.recording.virtual_loop import AbandonedError, VirtualLoop


def test_unwanted_run_is_abandoned_and_cleans_up() -> None:
    answers, story = iter([True] * 20), list[str]()

    async def forever() -> None:
        try:
            for _ in range(1000):
                await asyncio.sleep(60.0)
        finally:
            await asyncio.sleep(60.0)
            story.append("cleaned up")

    with (
        pytest.raises(AbandonedError),
        asyncio.Runner(loop_factory=partial(VirtualLoop, lambda: next(answers, False))) as runner,
    ):
        runner.run(forever())
    assert story == ["cleaned up"]


def test_what_is_wanted_runs_to_its_end() -> None:
    with asyncio.Runner(loop_factory=partial(VirtualLoop, lambda: True)) as runner:
        runner.run(asyncio.sleep(3600.0))
        assert runner.get_loop().time() == 3600.0
