from __future__ import annotations

import asyncio
import time

from tests.virtual_time import VirtualTimeLoop


def test_a_cancelled_timer_does_not_make_the_loop_really_sleep() -> None:
    async def outlive_a_deadline() -> float:
        asyncio.get_running_loop().call_later(1.0, print).cancel()
        await asyncio.sleep(600.0)
        return asyncio.get_running_loop().time()

    started_s = time.monotonic()
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(outlive_a_deadline()) == 600.0
    assert time.monotonic() - started_s < 60.0
