"""Fragments by the definition of the paper, and how a pod changes them; `tests/fgd` places its whole trace."""

from __future__ import annotations

import math

import pytest

from podium.framework.contract.status import PluginError
from podium.framework.profile.plugin_args import typed_args
from podium.plugins.contrib.fragmentation_gradient_descent import FragmentationGradientDescent
from podium.testing import check_contract, pod
from tests.unit.plugins.contrib.loads import STATE, made
from tests.unit.plugins.contrib.test_gpu_devices import gpu_node, part, whole

HALVES, WHOLES = {"gpus": 1, "milli": 500}, {"gpus": 1}


def plugin_for(*kinds, objects=()):
    return made(FragmentationGradientDescent, *objects, args={"usualPods": list(kinds)})


def fragments(cpu_milli, free, *kinds, model=""):
    return plugin_for(*kinds)._fragments(cpu_milli, free, model)


def test_it_keeps_the_contract():
    kinds = [{"cpuMilli": 500, "gpus": 1, "milli": 300, "weight": 3}, {"cpuMilli": 2000, "gpus": 2}, {"cpuMilli": 100}]
    check_contract(FragmentationGradientDescent, {"gpuResource": "example.com/gpu", "usualPods": kinds}, clusters=15)


@pytest.mark.parametrize(
    ("cpu_milli", "free", "kind", "amount"),
    [
        # Enough of everything: only what is left of GPUs with too little is lost.
        (1000, (300, 1000), {**HALVES, "cpuMilli": 1000}, 300),
        (1000, (300, 1000), HALVES, 300),
        # Too few GPUs, too little cpu, both, another model, no GPU asked for: all of it is.
        (1000, (300, 400), HALVES, 700),
        (999, (500, 1000), {**HALVES, "cpuMilli": 1000}, 1500),
        (999, (300,), {**HALVES, "cpuMilli": 1000}, 300),
        (1000, (1000,), {"gpus": 2}, 1000),
        (1000, (1000,), {**WHOLES, "models": ["T4"]}, 1000),
        (1000, (1000,), {"cpuMilli": 10}, 1000),
    ],
)
def test_fragments_for_one_kind_of_pod(cpu_milli, free, kind, amount):
    assert fragments(cpu_milli, free, kind) == amount


def test_free_devices_of_a_model_that_a_kind_of_pod_takes_are_no_fragments_for_it():
    assert fragments(1000, (1000,), {**WHOLES, "models": ["T4", "P100"]}, model="P100") == 0


def test_fragments_are_a_mean_over_the_usual_pods():
    assert fragments(1000, (300, 1000), {**HALVES, "weight": 3}, {**WHOLES, "gpus": 2}) == 0.75 * 300 + 0.25 * 1300


def test_the_node_where_fragments_grow_least_wins():
    nodes = [gpu_node("half"), gpu_node("idle")]
    plugin = plugin_for(WHOLES, objects=(*nodes, part("a", 500, "half", "1")))
    half, idle = plugin.handle.snapshot()
    # On the node with a half-used GPU, the other half is a fragment already, and becomes none.
    assert plugin.score(STATE, part("x", 500), half) == int(100 / (1 + math.exp(-0.5)))
    assert plugin.score(STATE, part("x", 500), idle) == int(100 / (1 + math.exp(0.5)))
    assert plugin.score(STATE, pod(), idle) == 50


def test_the_device_with_the_best_score_is_chosen():
    plugin = plugin_for(HALVES, objects=(gpu_node(),))
    (item,) = plugin.handle.snapshot()
    demand = plugin.devices.demand(part("x", 300).spec)
    # 800 would leave 500, which a usual pod can have, and 1000 a larger part; 300 is a fragment, which would be gone.
    assert plugin.choose(item, (800, 300, 1000), demand) == (1,)
    assert plugin.choose(item, (800, 1000), demand) == (0,)
    assert plugin.choose(item, (200, 100), demand) == ()
    assert plugin.choose(item, (1000, 500, 1000), plugin.devices.demand(whole("y", 2).spec)) == (0, 2)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({}, "usual_pods|usualPods"),
        ({"usualPods": []}, "usual"),
        ({"usualPods": [{"gpus": -1}]}, "gpus"),
        ({"usualPods": [{"milli": 2000}]}, "milli"),
        ({"usualPods": [{"weight": 0}]}, "weight"),
        ({"usualPods": [{"gpu": 1}]}, "gpu"),
    ],
)
def test_args_that_cannot_be_used(args, message):
    with pytest.raises(PluginError, match=message):
        typed_args(FragmentationGradientDescent, args)
