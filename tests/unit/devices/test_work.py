"""How much work is done before an attempt can be interrupted, in calls of functions, where a pool has many devices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from podium.devices import AllocatedDevices, AllocationError, Allocator, Inventory
from podium.devices.answers import SHORT_MAX
from podium.devices.pools import pools_of_node
from podium.devices.selectors import compile_selector
from podium.objects.devices import CounterSet, ResourceSlice
from tests.unit.devices.cluster import CLASSES, a_slice, claim, device, request
from tests.unit.plugins.dynamic_resources.test_work import calls

PER_SLICE = 128
PER_TURN_MAX = 5_000
PER_SELECTOR_MAX = 60_000
"""A turn that compiles a short selector, and begins to evaluate it, takes about 20 ms at most."""
SETS = msgspec.convert([{"name": "set", "counters": {"memory": {"value": "800Gi"}}}], tuple[CounterSet, ...])
CONSUMES = [{"counterSet": "set", "counters": {"memory": {"value": "1Gi"}}}]


def pool(slices: int, per_slice: int = PER_SLICE, **fields: Any) -> Iterator[ResourceSlice]:
    """The slices of a pool that all nodes reach, with counters in a slice of its own."""
    counters = "consumesCounters" in fields
    model = a_slice("s", device("g", **fields), slices=slices + counters, allNodes=True)
    if counters:
        yield replace(model, spec=replace(model.spec, devices=(), shared_counters=SETS))
    for at in range(slices):
        devices = tuple(replace(model.spec.devices[0], name=f"g{at}-{number}") for number in range(per_slice))
        metadata = replace(model.metadata, name=f"s{at}")
        yield replace(model, metadata=metadata, spec=replace(model.spec, devices=devices))


def read(slices: Iterator[ResourceSlice]) -> Inventory:
    """The inventory with all slices read, as the daemon reads them when the watch shows them."""
    inventory = Inventory()
    for item in slices:
        inventory.put(item)
        inventory.entry(item)
    return inventory


def test_a_pool_of_many_devices_is_put_together_slice_by_slice() -> None:
    def cost(per_slice: int) -> int:
        inventory = read(pool(100, per_slice))
        pauses = []
        count = calls(lambda: pauses.append(pools_of_node(inventory, "n1", {})))
        assert len(pauses[0].pools[0].devices) == 100 * per_slice
        return count

    assert cost(PER_SLICE) == cost(1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("request_spec", "fields"),
    [
        (request(selectors=[{"cel": {"expression": "device.driver == 'none'"}}]), {}),
        (request(allocationMode="All"), {}),
        (request(count=4), {"consumesCounters": CONSUMES}),
        (request(count=4), {"allowMultipleAllocations": True, "capacity": {"memory": "8Gi"}}),
    ],
    ids=["none is selected", "all of them", "counters", "shared"],
)
def test_an_attempt_pauses_however_many_devices_a_pool_has(
    request_spec: dict[str, Any], fields: dict[str, Any]
) -> None:
    inventory = read(pool(40, **fields))
    allocator = Allocator(inventory, CLASSES.get, AllocatedDevices(), Random(1))
    steps = allocator.allocate_interruptibly("n1", {}, [claim(request_spec)])
    turns = []
    is_over = False

    def turn() -> None:
        nonlocal is_over
        try:
            next(steps)
        except (StopIteration, AllocationError):
            is_over = True

    while not is_over:
        turns.append(calls(turn))
    assert max(turns) < PER_TURN_MAX
    assert sum(turns) > max(turns)


@pytest.mark.parametrize(
    "expression",
    [
        f"{'[' * 140}1{']' * 140} == []",
        f"{'{1:' * 110}1{'}' * 110} == {{}}",
        f"{'[{1:' * 60}1{'}]' * 60} == []",
        f"{'[1].map(x, ' * 35}x{')' * 35} == []",
        f"{'+'.join(['1'] * 240)} == 0",
        f"{'-'.join(['1'] * 240)} == 0",
        f"{'+'.join(['.1'] * 160)} == .1",
        f"""{"+".join(["'a'"] * 120)} == ''""",
        f"{'+'.join(['[]'] * 150)} == []",
    ],
)
def test_a_short_selector_is_compiled_without_much_work(expression: str) -> None:
    assert len(expression) <= SHORT_MAX
    compile_selector("true")
    assert calls(lambda: compile_selector(expression)) < PER_SELECTOR_MAX


@pytest.mark.long
@pytest.mark.parametrize(
    "expression",
    [
        " || ".join(f"device.driver == 'driver-{number}'" for number in range(300)),
        "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))",
        f"'{'ab' * 100}'.matches('(a?){{300}}(b?){{300}}c')",
        f"{'strings.quote(' * 30}'{'a' * 20}'{')' * 30} == ''",
        f"{' && '.join(['[1, 2, 3].all(x, x > 0)'] * 300)}",
    ],
    ids=["a long text", "a loop in a loop", "a regular expression", "a text that doubles", "many loops"],
)
def test_a_long_selector_delays_no_other_task(expression: str) -> None:
    """What is long is work for a thread; everything else of a turn is short."""
    allocator = Allocator(read(pool(1, 4)), CLASSES.get, AllocatedDevices(), Random(1))
    spec = request(selectors=[{"cel": {"expression": expression}}])
    steps = allocator.allocate_interruptibly("n1", {}, [claim(spec)])
    turns, works = [], []

    def turn() -> None:
        works.append(next(steps))

    with suppress(StopIteration, AllocationError):
        while True:
            turns.append(calls(turn))
            if works[-1] is not None:
                works[-1]()
    assert any(works)
    assert max(turns) < PER_SELECTOR_MAX
