"""An attempt that takes long is logged with its steps."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from podium.config import LOOSE_GROUPS
from podium.framework.contract.status import unschedulable
from podium.framework.cycle.extenders import Extenders
from tests.builders import node, pod, pod_group
from tests.unit.daemon.loop_bench import LoopBench, fits
from tests.unit.daemon.test_loop_with_extenders import EXTENDER, Pool, wants_gpu
from tests.unit.framework.profiles import node_filter, node_scorer, post_filter, pre_filter, reserve
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


def take(seconds: float, answer: Any = None) -> Any:
    loop: Any = asyncio.get_running_loop()
    loop.spend(seconds)
    return answer


async def traces(bench: LoopBench, *items: Any) -> list[Any]:
    """Return the log lines while the pods are tried, without what every line has."""
    bench.put(*items)
    with capture_logs() as logs:
        async with bench.running():
            await anyio.sleep(1.5)
    common = {"event", "log_level", "component", "trace"}
    assert {entry["trace"] for entry in logs if entry["event"] == "Trace"} <= {"Scheduling"}
    return [{name: entry[name] for name in entry.keys() - common} for entry in logs if entry["event"] == "Trace"]


async def test_filtering_and_scoring_are_steps() -> None:
    slow = fits(lambda name: take(0.06))
    bench = LoopBench(slow, node_scorer("S", lambda name: take(0.02, 1)))
    assert await traces(bench, node("n1"), node("n2"), pod("web-1")) == [
        {
            "namespace": "default",
            "name": "web-1",
            "total_ms": 160,
            "steps_ms": {"Computing predicates done": 120, "Prioritizing done": 40},
        }
    ]


async def test_a_pod_that_fits_nowhere_has_post_filter_as_a_step() -> None:
    bench = LoopBench(fits(lambda name: unschedulable("no")), post_filter("P", lambda _: take(0.2, (None, None))))
    [trace] = await traces(bench, node("n1"), pod("web-1"))
    assert trace["steps_ms"] == {"Computing predicates done": 0, "Running PostFilter plugins done": 200}


async def test_a_pod_that_pre_filter_rejects_has_its_step() -> None:
    rejects = pre_filter("P", lambda: take(0.3, (None, unschedulable("no"))))
    [trace] = await traces(LoopBench(rejects), node("n1"), pod("web-1"))
    assert trace["steps_ms"] == {"Computing predicates done": 300, "Running PostFilter plugins done": 0}


async def test_the_time_of_extenders_counts() -> None:
    bench = LoopBench(extenders=Extenders([EXTENDER], Random(1)), pool=Pool())
    [trace] = await traces(bench, node("n1"), wants_gpu("web-1"))
    assert (trace["total_ms"], trace["steps_ms"]) == (1000, {"Computing predicates done": 1000})


async def test_a_short_attempt_is_not_logged_and_what_follows_the_decision_does_not_count() -> None:
    bench = LoopBench(fits(lambda name: take(0.09)), reserve("R", lambda: take(0.5)))
    assert await traces(bench, node("n1"), pod("web-1")) == []


async def test_the_attempt_at_a_pod_group_is_one() -> None:
    bench = LoopBench(node_filter("F", lambda name: take(0.06)), rules=LOOSE_GROUPS)
    items = (node("n1"), pod_group("gang", min_count=2), pod("a", group="gang"), pod("b", group="gang"))
    assert await traces(bench, *items) == [
        {
            "pod_group": "default/gang",
            "total_ms": 120,
            "steps_ms": {"Deciding on the pods of the group done": 120},
        }
    ]
