"""How much work an attempt is, in calls of functions: it does not grow with what the pod has nothing to do with."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from msgspec.structs import replace

import podium
from podium.config import Profile
from podium.config.args import DynamicResourcesArgs
from podium.config.types import Plugin as Enabled
from podium.config.types import Plugins, PluginSet
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.steps import run_unasked
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.search import Rotation, Sampling, find_feasible
from podium.framework.profile.runtime import Framework
from podium.objects.claims import ResourceClaim
from podium.plugins.dynamic_resources.plugin import DynamicResources
from podium.plugins.dynamic_resources.pod_devices import PodDevices
from podium.queues.nominator import Nominator
from tests.builders import node, pod, snapshot_of
from tests.unit.framework.profiles import Bind, Recorder, Sort
from tests.unit.plugins.dynamic_resources.claims import DeviceHandle, a_claim, a_slice, allocation, user

ALLOCATED = 100_000
PER_POD_MAX = 80
_SOURCES = str(Path(podium.__file__).parent)


def calls(work: Callable[[], object]) -> int:
    """Return the number of calls by podium's code, in Python or in C; not by what the garbage collector runs."""
    count = 0

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call") and frame.f_code.co_filename.startswith(_SOURCES)

    # Finalizers of what earlier tests have left behind would count, too.
    gc.collect()
    gc.disable()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def allocated_claims(count: int) -> Iterable[ResourceClaim]:
    """Claims that hold a device each, on nodes that are not looked at."""
    model = a_claim("held", allocation=allocation("g0", node="elsewhere"))
    assert model.status.allocation is not None
    result_held = model.status.allocation
    (result,) = result_held.devices.results
    for number in range(count):
        own = replace(
            result_held, devices=replace(result_held.devices, results=(replace(result, device=f"d{number}"),))
        )
        metadata = replace(model.metadata, name=f"held-{number}", uid=f"uid-held-{number}")
        yield replace(model, metadata=metadata, status=replace(model.status, allocation=own))


@pytest.mark.long
def test_an_attempt_costs_the_same_beside_100_000_allocated_claims() -> None:
    nodes = snapshot_of(*(node(f"n{at}") for at in range(20)))
    slices = [a_slice(f"n{at}", *(f"g{index}" for index in range(8))) for at in range(20)]
    call_counts = []
    for count in (0, ALLOCATED):
        handle = DeviceHandle(a_claim("first"), a_claim("second"), *allocated_claims(count), *slices)
        plugin = DynamicResources(DynamicResourcesArgs(), handle)

        def attempt(name: str, plugin: DynamicResources = plugin) -> None:
            state, item = CycleState(), user(name)
            assert plugin.pre_filter(state, item, nodes)[1] is None
            plugin.filter_rows(state, item, nodes, nodes.order)
            pod_devices = state.read(PodDevices)
            assert all(pod_devices.devices_on(f"n{at}") is not None for at in range(20))
            assert plugin.reserve(state, item, "n3") is None

        attempt("first")
        call_counts.append(calls(lambda attempt=attempt: attempt("second")))  # type: ignore[misc]
    assert call_counts[0] == call_counts[1]


def test_pods_without_claims_cost_next_to_nothing_whatever_devices_there_are() -> None:
    def cost(node_count: int, *objects: Any, has_plugin: bool = True) -> int:
        handle = DeviceHandle(*objects)
        classes = {
            plugin_class.name: plugin_class
            for plugin_class in (Sort, Bind, *([DynamicResources] if has_plugin else []))
        }
        profile = Profile("podium", None, Plugins(multi_point=PluginSet(tuple(Enabled(name) for name in classes))))
        plugins_built = {DynamicResources.name: DynamicResources(DynamicResourcesArgs(), handle)} if has_plugin else {}
        framework = Framework(profile, classes, handle, Recorder(), plugins_built)
        snapshot = snapshot_of(*(node(f"n{at}") for at in range(node_count)))

        def attempt() -> None:
            cycle = Cycle(framework, pod(), snapshot, Nominator({}.get))
            assert len(run_unasked(find_feasible(cycle, Sampling(Rotation(), 100))).rows) == node_count

        attempt()
        return calls(attempt)

    slices = [a_slice(f"n{at}", "g0") for at in range(50)]
    cost(50)  # what is computed once per process
    assert cost(50, *slices, *allocated_claims(1000)) == cost(50) == cost(5)
    assert cost(50) - cost(50, has_plugin=False) <= PER_POD_MAX
