from __future__ import annotations

from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from podium.daemon.boundary import Boundary
from podium.daemon.steps import advance, finish
from podium.framework.contract.questions import AskFilter, Filtered
from podium.framework.contract.steps import PAUSE, Pause, Steps
from podium.lib.clock import ManualClock
from tests.builders import pod
from tests.unit.daemon.test_loop_with_extenders import EXTENDER

pytestmark = pytest.mark.anyio

QUESTION = AskFilter(EXTENDER, pod("web-1"), ())
ANSWER = Filtered((), {}, {})


class Long:
    """An attempt in parts of some milliseconds, with a pause after each but the last."""

    def __init__(self, *parts_ms: float) -> None:
        self.clock = ManualClock()
        self.parts_ms = parts_ms
        self.turns_ms: list[float] = []
        self._seen_s = 0.0

    def steps(self) -> Steps[str]:
        for number, part_ms in enumerate(self.parts_ms):
            if number:
                assert (yield PAUSE) is None
            self.clock.advance(part_ms / 1e3)
        return "done"

    def look(self) -> None:
        """Note for how long nobody has looked."""
        now_s = self.clock.monotonic()
        self.turns_ms.append(round((now_s - self._seen_s) * 1e3))
        self._seen_s = now_s

    async def run(self) -> str:
        steps = self.steps()
        try:
            step = advance(steps, self.clock, 0.0)
        except StopIteration as end:
            return str(end.value)
        return await finish(steps, step, never, never, self.clock)

    async def waits_ms(self) -> list[float]:
        """How long others had to wait each time, while the attempt went on."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch)
            assert await self.run() == "done"
            tasks.cancel_scope.cancel()
        self.look()
        return [wait_ms for wait_ms in self.turns_ms if wait_ms]

    async def _watch(self) -> None:
        while True:
            self.look()
            await checkpoint()


async def never(question: Any) -> Any:
    raise AssertionError(f"asked {question}")


async def test_an_attempt_that_is_soon_over_uses_none_of_its_pauses() -> None:
    assert await Long(1, 1, 1).waits_ms() == [3]


async def test_others_have_their_turn_where_an_attempt_takes_long() -> None:
    assert await Long(*[2] * 10).waits_ms() == [6, 6, 6, 2]
    assert await Long(10, 20, 10).waits_ms() == [10, 20, 10]


async def test_pauses_and_questions_come_in_any_order() -> None:
    def steps() -> Steps[Any]:
        yield PAUSE
        answer = yield QUESTION
        yield PAUSE
        return answer

    async def reply(question: Any) -> Any:
        assert question is QUESTION
        return ANSWER

    clock = ManualClock()
    running = steps()
    step = advance(running, clock, 0.0)
    assert step is QUESTION
    assert await finish(running, step, reply, never, clock) is ANSWER


async def test_a_pause_that_comes_late_is_used_at_once() -> None:
    steps = Long(5, 1).steps()
    assert isinstance(advance(steps, ManualClock(), -0.006), Pause)


async def test_others_have_their_turn_while_work_is_done_that_takes_long() -> None:
    turns, is_done = 0, False

    def work() -> None:
        nonlocal is_done
        while turns < 10:
            sum(range(1000))
        is_done = True

    def steps() -> Steps[str]:
        yield Pause(work)
        return "done"

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await checkpoint()

    clock, running = ManualClock(), steps()
    step = advance(running, clock, 0.0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        assert await finish(running, step, never, Boundary().compute, clock) == "done"
        tasks.cancel_scope.cancel()
    assert is_done
