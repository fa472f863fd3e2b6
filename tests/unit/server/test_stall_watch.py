from __future__ import annotations

import asyncio
import itertools

import anyio
import pytest
from structlog.testing import capture_logs

from podium.server import stall_watch
from podium.server.stall_watch import StallWatch
from podium.telemetry import Metrics
from tests.virtual_time import VIRTUAL_TIME, LoopClock, VirtualTimeLoop

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


class StandingClock(LoopClock):
    """Goes on by as much as the loop is told to have stood still."""

    stood_s = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.stood_s


async def observe_stalls(*stalls_s: float) -> tuple[Metrics, list[float]]:
    """Return metrics and log lines after these stalls, one each second."""
    metrics, clock = Metrics(), StandingClock()
    with capture_logs() as logs:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(StallWatch(clock, metrics).run)
            for stall_s in stalls_s:
                await anyio.sleep(1.005)
                clock.stood_s += stall_s
            await anyio.sleep(0.05)
            tasks.cancel_scope.cancel()
    return metrics, [line["seconds"] for line in logs]


async def test_the_longest_stall_is_kept() -> None:
    metrics, _ = await observe_stalls(0.02, 0.3, 0.1)
    assert metrics.value("podium_loop_stall_max_seconds") == pytest.approx(0.3)
    text = metrics.render().decode()
    looks = metrics.value("podium_loop_stall_seconds")
    assert f'podium_loop_stall_seconds_bucket{{le="0.25"}} {looks - 1:.0f}' in text
    assert f'podium_loop_stall_seconds_bucket{{le="0.05"}} {looks - 2:.0f}' in text


@pytest.mark.parametrize(("cpu_s", "level"), [(0.25, "warning"), (0.05, "info")])
async def test_a_stall_is_a_warning_only_if_the_loop_used_the_cpu(
    monkeypatch: pytest.MonkeyPatch, cpu_s: float, level: str
) -> None:
    readings = itertools.chain([0.0], itertools.repeat(cpu_s))
    monkeypatch.setattr(stall_watch.time, "thread_time", lambda: next(readings))
    clock = StandingClock()
    with capture_logs() as logs:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(StallWatch(clock, Metrics()).run)
            await anyio.sleep(0.01)
            clock.stood_s += 0.3
            await anyio.sleep(0.05)
            tasks.cancel_scope.cancel()
    assert [(line["log_level"], line["cpu_seconds"]) for line in logs] == [(level, cpu_s)]


async def test_only_stalls_that_somebody_may_notice_are_logged() -> None:
    _, logged = await observe_stalls(0.04, 0.3, 0.06)
    assert logged == [0.3, 0.06]


class BusyLoop(VirtualTimeLoop):
    """A loop on which callbacks take time."""

    def work(self, turns: int, turn_s: float) -> None:
        """Take so long in each of so many turns of the loop."""
        self._now_s += turn_s
        if turns > 1:
            self.call_soon(self.work, turns - 1, turn_s)


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"loop_factory": BusyLoop})], scope="module")
async def test_what_comes_in_many_turns_is_no_stall(anyio_backend: object) -> None:
    metrics, loop = Metrics(), asyncio.get_running_loop()
    assert isinstance(loop, BusyLoop)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(StallWatch(LoopClock(), metrics).run)
        await anyio.sleep(1.0)
        loop.work(turns=20, turn_s=0.04)
        await anyio.sleep(1.0)
        tasks.cancel_scope.cancel()
    assert metrics.value("podium_loop_stall_max_seconds") <= 2 * 0.04
