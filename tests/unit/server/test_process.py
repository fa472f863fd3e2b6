"""The shell with stand-ins for all that it touches, in virtual time: orders of starting and stopping, and limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from podium.lib.log import get_logger
from podium.server.election import LeaseTakenError, Timings
from podium.server.process import Election, Parts, Process
from podium.server.supervision import ComponentFailedError, Tasks
from podium.telemetry.process_metrics import ProcessMetrics
from tests.virtual_time import VIRTUAL_TIME, LoopClock

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


class Informers:
    """Synced after a second, and connected after `connected_s`."""

    def __init__(self, story: list[str], connected_s: float = 1.0) -> None:
        self._story = story
        self._connected_s = connected_s
        self.unconnected = ["nodes"]

    async def run(self) -> None:
        self._story.append("informers")
        await anyio.sleep_forever()

    async def wait_synced(self) -> None:
        await anyio.sleep(1.0)
        self._story.append("synced")

    async def wait_connected(self) -> None:
        await anyio.sleep(self._connected_s)
        self._story.append("connected")


class Recorder:
    """Writes no Events; `left` of them stay."""

    def __init__(self, story: list[str], parts_left: int = 0) -> None:
        self._story = story
        self._left = parts_left

    async def run(self) -> None:
        await anyio.sleep_forever()

    async def aclose(self, deadline_s: float) -> int:
        self._story.append(f"Events within {deadline_s:g} s")
        return self._left


class Elector:
    """Leads after a second."""

    def __init__(self, story: list[str]) -> None:
        self._story = story

    async def acquire(self) -> None:
        await anyio.sleep(1.0)
        self._story.append("leading")

    async def renew(self) -> None:
        await anyio.sleep_forever()

    def report_stop(self) -> None:
        self._story.append("stopped leading")

    async def release(self) -> None:
        self._story.append("released")


class Bench(Process):
    """A process whose parts are stand-ins.

    Attributes:
        story: what has happened, in order.
    """

    def __init__(self, *, elects: bool = True) -> None:
        election = Election(
            namespace="kube-system", name="bench", timings=Timings(), activity="Working", controller="bench"
        )
        self.metrics = ProcessMetrics(elects=True)
        super().__init__(
            get_logger("bench"), "bench", self.metrics, clock=LoopClock(), election=election if elects else None
        )
        self.story: list[str] = []
        self.lease: Any = Elector(self.story) if elects else None

    def parts(self, **changes: Any) -> Parts:
        informers: Any = Informers(self.story)
        recorder: Any = Recorder(self.story)

        async def drain() -> None:
            self.story.append("drained")

        parts = Parts(begin=self.begin, informers=informers, recorder=recorder, drain=drain, drain_s_max=6.0)
        return replace(parts, **changes)

    def begin(self) -> Iterable[Tasks]:
        self.story.append("begun")
        return [{"work": anyio.sleep_forever}]

    async def _elector(self, *_: Any) -> Any:
        return self.lease

    async def _stop_on_signal(self, _: object) -> None:
        await anyio.sleep_forever()

    async def run(self, parts: Parts, stop_after_s: float) -> list[str]:
        async with anyio.create_task_group() as group:
            group.start_soon(self._run_parts, parts)
            await anyio.sleep(stop_after_s)
            self.stop()
        return self.story


STOP = ["drained", "stopped leading", "Events within 8 s", "released"]


async def test_informers_sync_before_it_leads_and_it_begins_when_they_are_connected() -> None:
    bench = Bench()
    story = await bench.run(bench.parts(), 10.0)
    assert story == ["informers", "synced", "leading", "connected", "begun", *STOP]


async def test_informers_may_wait_until_it_leads() -> None:
    bench = Bench()
    story = await bench.run(bench.parts(leads_first=True), 10.0)
    assert story == ["leading", "informers", "synced", "connected", "begun", *STOP]


async def test_without_an_election_it_begins_once_everything_is_synced() -> None:
    bench = Bench(elects=False)
    story = await bench.run(bench.parts(), 10.0)
    assert story == ["informers", "synced", "begun", "drained", "Events within 8 s"]


@pytest.mark.parametrize("stop_after_s", [0.5, 1.0, 1.5, 2.0, 2.5])
async def test_a_stop_during_the_start_lets_no_work_begin(stop_after_s: float) -> None:
    bench = Bench()
    story = await bench.run(bench.parts(), stop_after_s)
    assert "begun" not in story
    assert story[-4:] == STOP


async def test_watches_that_stay_disconnected_are_waited_for_ten_seconds() -> None:
    bench = Bench()
    informers: Any = Informers(bench.story, connected_s=3600.0)
    with capture_logs() as log:
        await bench.run(bench.parts(informers=informers), 11.9)
        assert "begun" not in bench.story
    bench = Bench()
    informers = Informers(bench.story, connected_s=3600.0)
    with capture_logs() as log:
        await bench.run(bench.parts(informers=informers), 12.1)
    assert "begun" in bench.story
    (warning,) = [line for line in log if line["log_level"] == "warning"]
    assert warning["event"] == "Working although some watches are not connected"
    assert (warning["component"], warning["resources"]) == ("bench", ["nodes"])


async def test_a_drain_that_takes_too_long_is_given_up_and_leaves_two_seconds_for_events() -> None:
    bench = Bench()
    story = await bench.run(bench.parts(drain=anyio.sleep_forever), 10.0)
    assert story[-3:] == ["stopped leading", "Events within 2 s", "released"]


async def test_while_a_write_is_under_way_the_lease_is_not_released() -> None:
    bench = Bench()
    under_way = {"bindings": 0}

    async def bind() -> None:
        under_way["bindings"] = 2
        try:
            await anyio.sleep_forever()
        finally:
            under_way["bindings"] = 0

    parts = bench.parts(begin=lambda: [{"binding": bind}], unfinished=lambda: dict(under_way))
    with capture_logs() as log:
        story = await bench.run(parts, 10.0)
    assert story[-1] == "Events within 8 s"
    assert [(line["event"], line["bindings"]) for line in log if "bindings" in line] == [
        ("Stopping", 2),
        ("Exiting with unfinished work", 2),
    ]


async def test_events_that_are_left_are_reported_and_the_lease_is_released() -> None:
    bench = Bench()
    recorder: Any = Recorder(bench.story, parts_left=3)
    with capture_logs() as log:
        story = await bench.run(bench.parts(recorder=recorder), 10.0)
    assert [line["events"] for line in log if line["event"] == "Exiting with unfinished work"] == [3]
    assert story[-1] == "released"


async def test_it_stops_by_itself_when_its_time_is_over() -> None:
    bench = Bench()
    started_s = anyio.current_time()
    await bench._run_parts(bench.parts(run_s_max=60.0))
    assert anyio.current_time() - started_s == pytest.approx(63.0)


async def test_a_mistake_in_the_start_or_in_what_is_begun_is_counted_by_name() -> None:
    async def fail() -> None:
        raise KeyError("mistake")

    def begin_wrongly() -> Iterable[Tasks]:
        raise KeyError("mistake")

    for changes, part in (({"begin": lambda: [{"work": fail}]}, "work"), ({"begin": begin_wrongly}, "start")):
        bench = Bench()
        with pytest.RaisesGroup(ComponentFailedError):
            await bench._run_parts(bench.parts(**changes))
        sample_line = f'podium_unexpected_errors_total{{where="task",name="{part}"}} 1'
        assert sample_line in bench.metrics.render().decode()
        assert "released" not in bench.story


async def test_a_lease_that_must_not_be_waited_for_ends_the_start() -> None:
    async def refuse() -> None:
        raise LeaseTakenError("kube-scheduler holds it")

    bench = Bench()
    bench.lease.acquire = refuse
    with pytest.RaisesGroup(LeaseTakenError):
        await bench._run_parts(bench.parts())
    assert "podium_unexpected_errors_total{" not in bench.metrics.render().decode()
