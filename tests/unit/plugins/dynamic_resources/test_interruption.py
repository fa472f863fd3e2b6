"""A search for devices that takes long lets other tasks run; counted with a clock that only the work moves."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from podium.cel.libraries import regexes
from podium.cel.selector import Selector
from podium.config import Profile
from podium.config.args import DynamicResourcesArgs
from podium.config.types import Plugin as Enabled
from podium.config.types import Plugins, PluginSet
from podium.devices.interruptible import Work
from podium.framework.contract.steps import Pause
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.search import Rotation, Sampling, filter_all, find_feasible
from podium.framework.profile.runtime import Framework
from podium.lib.clock import ManualClock
from podium.objects.devices import ResourceSlice
from podium.plugins.dynamic_resources.plugin import DynamicResources
from podium.queues.nominator import Nominator
from tests.builders import node, snapshot_of
from tests.unit.framework.profiles import Bind, Recorder, Sort
from tests.unit.plugins.dynamic_resources.claims import DRIVER, DeviceHandle, a_slice, user
from tests.unit.plugins.dynamic_resources.test_bad_input import asks

DEAR_MS = 3.0
HELD_MS_MAX = 50.0
NODES = 60
DEAR = f"device.attributes['{DRIVER}'].serial == '%s'"


def device(serial: str) -> dict[str, Any]:
    return {"name": f"g{serial}", "attributes": {"serial": {"string": serial}}}


def of_each_node() -> list[ResourceSlice]:
    return [a_slice(f"n{at}", *(device(f"{at}-{index}") for index in range(8))) for at in range(NODES)]


def of_all_nodes() -> list[ResourceSlice]:
    slices = 5
    pool = {"name": "all", "generation": 1, "resourceSliceCount": slices}
    return [
        msgspec.convert(
            {
                "metadata": {"name": f"s{at}"},
                "spec": {
                    "driver": DRIVER,
                    "allNodes": True,
                    "pool": pool,
                    "devices": [device(f"{at}-{index}") for index in range(100)],
                },
            },
            ResourceSlice,
        )
        for at in range(slices)
    ]


class Search:
    """An attempt at a pod whose claim selects one device by its serial number, dearly."""

    def __init__(self, slices: list[ResourceSlice], serial: str, selector: str = DEAR) -> None:
        self.clock = ManualClock()
        handle = DeviceHandle(asks(selector.replace("%s", serial)), *slices, clock=self.clock)
        plugin = DynamicResources(DynamicResourcesArgs(), handle)
        classes = {plugin_class.name: plugin_class for plugin_class in (Sort, Bind, DynamicResources)}
        profile = Profile("podium", None, Plugins(multi_point=PluginSet(tuple(Enabled(name) for name in classes))))
        framework = Framework(profile, classes, handle, Recorder(), {plugin.name: plugin})
        snapshot = snapshot_of(*(node(f"n{at}") for at in range(NODES)))
        self.cycle = Cycle(framework, user("c"), snapshot, Nominator({}.get))

    def run(self, do: Callable[[Work], None] = lambda _: None) -> list[int]:
        """The rows that pass, and in `held_ms` how long other tasks had to wait each time.

        Args:
            do: called with the work that may be done elsewhere.
        """
        self.held_ms: list[float] = []
        steps, seen_s = find_feasible(self.cycle, Sampling(Rotation(), 100)), self.clock.monotonic()
        rows: list[int] | None = None
        while rows is None:
            try:
                pause = next(steps)
                assert isinstance(pause, Pause)
                if pause.work is not None:
                    do(pause.work)
            except StopIteration as end:
                rows = end.value.rows.tolist()
            now_s = self.clock.monotonic()
            self.held_ms.append((now_s - seen_s) * 1e3)
            seen_s = now_s
        return rows


@pytest.fixture(autouse=True)
def running(monkeypatch: pytest.MonkeyPatch) -> list[Search]:
    """Each answer of a selector takes the clock of the running search some milliseconds further."""
    searches: list[Search] = []
    answer = Selector.answer_soon

    def dearly(self: Selector, binding: Any) -> tuple[bool | None, int]:
        searches[-1].clock.advance(DEAR_MS / 1e3)
        return answer(self, binding)

    monkeypatch.setattr(Selector, "answer_soon", dearly)
    return searches


@pytest.mark.parametrize(("slices", "serial"), [(of_each_node(), "59-7"), (of_all_nodes(), "4-99")])
def test_dear_selectors_never_hold_up_other_tasks(
    slices: list[ResourceSlice], serial: str, running: list[Search]
) -> None:
    search = Search(slices, serial)
    running.append(search)
    rows = search.run()
    assert sum(search.held_ms) >= len(slices) * len(slices[0].spec.devices) * DEAR_MS
    assert max(search.held_ms) <= HELD_MS_MAX
    unbroken = Search(slices, serial)
    running.append(unbroken)
    assert filter_all(unbroken.cycle).rows.tolist() == rows
    assert search.cycle.diagnosis.rejected_count == unbroken.cycle.diagnosis.rejected_count == NODES - len(rows)


def test_a_search_that_is_short_has_no_pause(running: list[Search]) -> None:
    search = Search([a_slice("n0", device("0"))], "0")
    running.append(search)
    assert search.run() == [0]
    assert len(search.held_ms) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    "selector",
    [
        "lists.range(150).all(a, lists.range(150).all(b, a + b >= 0))",
        " && ".join(f"device.driver != 'driver-{index}.example.com'" for index in range(100)),
        " && ".join(f"!device.driver.matches('(.?){{500}}{index}')" for index in range(10)),
    ],
    ids=["loops", "many terms", "patterns"],
)
@pytest.mark.parametrize("is_done_elsewhere", [True, False])
def test_what_takes_long_of_a_selector_may_be_done_elsewhere(
    selector: str, is_done_elsewhere: bool, running: list[Search]
) -> None:
    regexes.pattern.cache_clear()  # A pattern that knows a text is fast.
    slices = [a_slice(f"n{at}", device(f"{at} {is_done_elsewhere}")) for at in range(3)]
    search = Search(slices, f"1 {is_done_elsewhere}", f"{selector} && {DEAR}")
    running.append(search)
    works: list[Work] = []

    def do(work: Work) -> None:
        works.append(work)
        if is_done_elsewhere:
            with ThreadPoolExecutor(1) as thread:
                thread.submit(work).result()

    assert search.run(do) == [1]
    assert works
    assert filter_all(search.cycle).rows.tolist() == [1]
