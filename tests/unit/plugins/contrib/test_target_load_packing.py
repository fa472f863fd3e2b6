"""Scores of TargetLoadPacking by its formula, and the surprises of upstream's."""

from __future__ import annotations

import msgspec
import pytest

from podium.framework.contract.status import PluginError
from podium.framework.profile.plugin_args import typed_args
from podium.plugins.contrib.target_load_packing import TargetLoadPacking
from podium.testing import check_contract, node, node_metrics, pod
from tests.unit.plugins.contrib.loads import WATCHER, made, scores

FAR = 1 << 40
"""An end of the measured time after which no pod was placed."""


def test_it_keeps_the_contract():
    check_contract(TargetLoadPacking)


def test_the_score_rises_to_the_target_and_falls_behind_it():
    nodes = [node(name, cpu="10") for name in ("idle", "below", "at", "above", "full")]
    loads = {"idle": -10.0, "below": 10.0, "at": 30.0, "above": 60.0, "full": 95.0}
    metrics = node_metrics({name: {"CPU": value} for name, value in loads.items()}, end=FAR)
    plugin = made(TargetLoadPacking, *nodes, metrics)
    # The pod is expected to use 1 of 10 cores: 0 %, 20 %, 40 %, 70 %, 105 %.
    assert scores(plugin, pod(requests={"cpu": "1"}, limits={"cpu": "1"})) == {
        "idle": 40,
        "below": 70,
        "at": 100,
        "above": 20,
        "full": 0,
    }


def test_nodes_without_a_cpu_load_score_0():
    nodes = [node("unknown"), node("memory-only"), node("known")]
    metrics = node_metrics({"memory-only": {"Memory": 5.0}, "known": {"CPU": 0.0}}, end=FAR)
    plugin = made(TargetLoadPacking, *nodes, metrics)
    assert scores(plugin, pod(limits={"cpu": 0})) == {"unknown": 0, "memory-only": 0, "known": 40}


def test_without_a_report_all_score_0():
    assert scores(made(TargetLoadPacking, node()), pod()) == {"n1": 0}


@pytest.mark.parametrize(
    ("resources", "args", "score"),
    [
        ({"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}, {}, 70),
        ({"limits": {"cpu": 0}}, {}, 40),
        ({"requests": {"cpu": "1"}}, {"defaultRequestsMultiplier": "2"}, 70),
        ({}, {"defaultRequests": {"cpu": "2"}}, 70),
        # Requests are there without cpu: none is expected.
        ({}, {"defaultRequests": {"memory": "2"}}, 40),
    ],
)
def test_what_a_container_is_expected_to_use(resources, args, score):
    plugin = made(
        TargetLoadPacking, node(cpu="10"), node_metrics({"n1": {"CPU": 0.0}}, end=FAR), args={**WATCHER, **args}
    )
    assert scores(plugin, pod(**resources)) == {"n1": score}


def test_pods_that_the_metrics_do_not_show_yet_are_added():
    def placed(name, when):
        condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": when}
        return pod(name, node="n1", limits={"cpu": "1"}, status={"conditions": [condition]})

    # The measured time ends at 00:02:00.
    pods = [
        placed("old", "2026-01-01T00:01:00Z"),
        placed("new", "2026-01-01T00:01:01Z"),
        placed("later", "2026-01-01T00:05:00Z"),
    ]
    metrics = node_metrics({"n1": {"CPU": 0.0}}, end=1767225720)
    assert scores(made(TargetLoadPacking, node(cpu="10"), *pods, metrics), pod(limits={"cpu": 0})) == {"n1": 70}


def test_a_restart_does_not_count_running_pods_as_just_placed():
    running = pod("old", node="n1", limits={"cpu": "1"}, status={"startTime": "2020-01-01T00:00:00Z"})
    metrics = node_metrics({"n1": {"CPU": 0.0}}, end=1767225720)
    assert scores(made(TargetLoadPacking, node(cpu="10"), running, metrics), pod(limits={"cpu": 0})) == {"n1": 40}


@pytest.mark.parametrize(("target", "score"), [(0, 40), (-3, 40), (150, 100)])
def test_targets_that_make_no_sense(target, score):
    plugin = made(
        TargetLoadPacking,
        node(),
        node_metrics({"n1": {"CPU": 0.0}}, end=FAR),
        args={**WATCHER, "targetUtilization": target},
    )
    assert scores(plugin, pod(limits={"cpu": 0})) == {"n1": score}


def test_each_profile_has_its_own_args():
    metrics = node_metrics({"n1": {"CPU": 0.0}}, end=FAR)
    first, _ = (
        made(TargetLoadPacking, node(), metrics, args={**WATCHER, "targetUtilization": target}) for target in (20, 60)
    )
    assert scores(first, pod(limits={"cpu": 0})) == {"n1": 20}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"defaultRequestsMultiplier": "much"}, "unable to parse DefaultRequestsMultiplier"),
        ({"defaultRequestsMultiplier": "nan"}, "unable to parse DefaultRequestsMultiplier"),
        ({"defaultRequests": {"cpu": "much"}}, r"defaultRequests\[cpu\]"),
        ({"watcherAddress": ""}, "invalid MetricProvider.Type, got"),
        ({"watcherAddress": "", "metricProvider": {"type": "SignalFx"}}, "invalid MetricProvider.Type, got SignalFx"),
        ({"metricProvider": {"type": "Prometheus", "adress": "x"}}, "unknown field"),
        ({"kind": "PeaksArgs"}, "want args to be of type TargetLoadPackingArgs, got PeaksArgs"),
    ],
)
def test_args_that_cannot_be_used(args, message):
    with pytest.raises(PluginError, match=message):
        typed_args(TargetLoadPacking, args)


def test_stale_metrics_are_skipped_if_the_args_say_so():
    report = msgspec.structs.replace(node_metrics({"n1": {"CPU": 0.0}}, end=FAR), fetched_s=0.0)
    for when_stale, score in (("score", 40), ("skip", 0)):
        plugin = made(TargetLoadPacking, node(), report, args={**WATCHER, "whenStale": when_stale})
        assert scores(plugin, pod(limits={"cpu": 0})) == {"n1": score}
