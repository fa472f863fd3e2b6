"""GPUs as single devices: who has which, what is left, and how a pod gets its own."""

from __future__ import annotations

from random import Random

import anyio
import pytest

from podium.cluster import Cache
from podium.framework.contract.cycle_state import CycleState
from podium.framework.profile.plugin_args import typed_args
from podium.plugins.contrib.gpu_devices import GpuDemand, pack
from podium.plugins.contrib.gpu_packing import GpuPacking
from podium.testing import RecordingHandle, node, pod
from tests.builders import cache_of
from tests.unit.plugins.contrib.loads import STATE, made

GPU, SHARE, INDEX = "nvidia.com/gpu", "podium.io/gpu-milli", "podium.io/gpu-index"


def gpu_node(name="n1", gpus=4):
    return node(name, cpu="64", allocatable={GPU: gpus, SHARE: 1000 * gpus})


def part(name, milli, node_name="", index=""):
    metadata = {"annotations": {INDEX: index}} if index else {}
    return pod(name, node=node_name, requests={SHARE: milli}, metadata=metadata)


def whole(name, gpus, node_name="", index=""):
    metadata = {"annotations": {INDEX: index}} if index else {}
    return pod(name, node=node_name, requests={GPU: gpus}, metadata=metadata)


def free(*pods, gpus=4):
    plugin = made(GpuPacking, gpu_node(gpus=gpus), *pods, args={})
    (item,) = plugin.handle.snapshot()
    return plugin.devices.free(item)


def test_annotations_say_who_has_which_device():
    assert free(part("a", 300, "n1", "2"), part("b", 500, "n1", "2"), whole("c", 2, "n1", "0-3")) == (0, 1000, 200, 0)


def test_pods_without_an_annotation_are_taken_to_be_packed():
    assert free(part("a", 300, "n1"), part("b", 600, "n1"), whole("c", 2, "n1")) == (0, 0, 100, 1000)


@pytest.mark.parametrize("index", ["9", "x", "-", "0x1", "١", "9999999999999999999"])
def test_annotations_that_make_no_sense(index):
    assert sum(free(part("a", 300, "n1", index))) in (3700, 4000)


def test_more_than_a_device_has_is_not_below_zero():
    assert free(part("a", 700, "n1", "0"), part("b", 700, "n1", "0"), gpus=1) == (0,)


def test_demand_of_a_pod_is_its_cpu_its_devices_and_the_share_of_each():
    plugin = made(GpuPacking, gpu_node(), args={})
    assert plugin.devices.demand(pod(cpu="2").spec) == GpuDemand(2000, 0, 0)
    assert plugin.devices.demand(part("a", 300).spec) == GpuDemand(0, 1, 300)
    assert plugin.devices.demand(whole("a", 2).spec) == GpuDemand(0, 2, 1000)
    assert plugin.devices.demand(pod(requests={GPU: 2, SHARE: 1000}).spec) == GpuDemand(0, 2, 500)


@pytest.mark.parametrize(
    ("amounts", "demand", "devices"),
    [
        ((1000, 300, 500, 1000), (1, 300), (1,)),
        ((1000, 300, 500, 1000), (1, 400), (2,)),
        ((1000, 300, 500, 1000), (2, 1000), (0, 3)),
        ((1000, 300, 500, 1000), (3, 1000), (0, 3)),
        ((), (1, 1), ()),
    ],
)
def test_the_least_that_is_enough_is_taken(amounts, demand, devices):
    assert pack(amounts, GpuDemand(0, *demand)) == devices


def test_free_parts_of_several_devices_are_not_one():
    pods = [part(f"p{at}", 600, "n1", str(at)) for at in range(4)]
    plugin = made(GpuPacking, gpu_node(), *pods, args={})
    (item,) = plugin.handle.snapshot()
    assert plugin.filter(STATE, part("fits", 400), item) is None
    assert plugin.filter(STATE, part("large", 500), item).message == "node(s) didn't have a GPU with enough left"
    assert plugin.filter(STATE, whole("two", 2), item).message == "node(s) didn't have a whole free GPU 2 times"
    assert plugin.filter(STATE, part("absurd", 1500), item) is not None
    assert plugin.filter(STATE, pod(cpu="1"), item) is None


def reserving(cache: Cache, *pods):
    handle = RecordingHandle(cache.snapshot(), pods)
    handle.snapshot_of = cache.snapshot
    return GpuPacking(typed_args(GpuPacking, {}), handle)


def test_devices_are_reserved_and_written():
    cache = cache_of(gpu_node())
    incoming = part("a", 300)
    plugin = reserving(cache, incoming)
    cache.assume_pod(incoming, "n1")
    assert plugin.reserve(CycleState(), incoming, "n1") is None
    anyio.run(plugin.pre_bind, CycleState(), incoming, "n1")
    change = {"metadata": {"uid": "uid-a", "annotations": {INDEX: "0"}}}
    assert plugin.handle.client.patches == [("default/a", change)]
    (item,) = cache.snapshot()
    assert plugin.devices.free(item) == (700, 1000, 1000, 1000)
    cache.forget_pod(incoming)
    plugin.unreserve(CycleState(), incoming, "n1")
    (item,) = cache.snapshot()
    assert plugin.devices.free(item) == (1000,) * 4


def test_nothing_is_written_for_pods_without_gpus():
    cache = cache_of(gpu_node())
    incoming = pod("a")
    plugin = reserving(cache, incoming)
    cache.assume_pod(incoming, "n1")
    assert plugin.reserve(CycleState(), incoming, "n1") is None
    anyio.run(plugin.pre_bind, CycleState(), incoming, "n1")
    assert plugin.handle.client.patches == []


def test_a_node_that_has_filled_up_meanwhile_is_refused():
    cache = cache_of(gpu_node(gpus=1), part("b", 800, "n1", "0"))
    incoming = part("a", 300)
    plugin = reserving(cache, incoming)
    cache.assume_pod(incoming, "n1")
    assert plugin.reserve(CycleState(), incoming, "n1").message == "not enough free GPUs are left on the node"


def test_no_device_is_ever_promised_twice():
    random = Random(5)
    cache, plugin, running = cache_of(gpu_node(gpus=3)), None, []
    plugin = reserving(cache)
    for number in range(300):
        if running and random.random() < 0.4:
            gone = running.pop(random.randrange(len(running)))
            cache.forget_pod(gone)
            plugin.unreserve(CycleState(), gone, "n1")
        is_part, name = random.random() < 0.8, f"p{number}"
        incoming = part(name, random.randint(1, 999)) if is_part else whole(name, random.randint(1, 3))
        (item,) = cache.snapshot()
        before = plugin.devices.free(item)
        if plugin.filter(STATE, incoming, item) is None:
            cache.assume_pod(incoming, "n1")
            assert plugin.reserve(CycleState(), incoming, "n1") is None
            running.append(incoming)
            (item,) = cache.snapshot()
            demand = plugin.devices.demand(incoming.spec)
            assert sum(before) - sum(plugin.devices.free(item)) == demand.gpus * demand.milli
        in_use = sum(plugin.devices.demand(item.spec).gpus * plugin.devices.demand(item.spec).milli for item in running)
        (item,) = cache.snapshot()
        assert sum(plugin.devices.free(item)) == 3000 - in_use


def test_a_snapshot_of_many_nodes_keeps_them_apart():
    plugin = made(GpuPacking, gpu_node("n1"), gpu_node("n2", 2), part("a", 400, "n2", "1"), args={})
    assert [plugin.devices.free(item) for item in plugin.handle.snapshot()] == [(1000,) * 4, (1000, 600)]
