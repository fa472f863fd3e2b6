"""Scores of GpuPacking: parts of GPUs in use come first, then idle GPUs beside them, then idle nodes."""

from __future__ import annotations

from podium.plugins.contrib.gpu_packing import GpuPacking
from podium.testing import check_contract, pod
from tests.unit.plugins.contrib.loads import STATE, made
from tests.unit.plugins.contrib.test_gpu_devices import gpu_node, part, whole


def scores(incoming, *objects):
    plugin = made(GpuPacking, *objects, args={})
    return {item.name: plugin.score(STATE, incoming, item) for item in plugin.handle.snapshot()}


def test_it_keeps_the_contract():
    check_contract(GpuPacking, {"gpuResource": "example.com/gpu"})


def test_fuller_devices_score_higher():
    nodes = [gpu_node(name) for name in ("tight", "loose", "beside", "idle")]
    pods = [part("a", 700, "tight", "0"), part("b", 100, "loose", "0"), part("c", 900, "beside", "0")]
    assert scores(part("x", 300), *nodes, *pods) == {"tight": 97, "loose": 91, "beside": 49, "idle": 29}


def test_whole_gpus_go_to_nodes_in_use():
    nodes = [gpu_node("used"), gpu_node("idle")]
    assert scores(whole("x", 2), *nodes, whole("a", 1, "used", "0")) == {"used": 48, "idle": 29}


def test_pods_without_gpus_do_not_care():
    assert scores(pod(cpu="1"), gpu_node()) == {"n1": 0}
