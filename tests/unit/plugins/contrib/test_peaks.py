"""Scores of Peaks: the least rise of power is best, and so are nodes of which nothing is known."""

from __future__ import annotations

import msgspec
import pytest

from podium.framework.contract.status import PluginError
from podium.framework.profile.plugin_args import typed_args
from podium.objects.core import Pod
from podium.plugins.contrib.peaks import Peaks
from podium.testing import check_contract, node, node_metrics, pod
from tests.unit.plugins.contrib.loads import STATE, made, scores

FALLING, RISING = {"k0": 400, "k1": -90, "k2": -0.07}, {"k0": 0, "k1": 10, "k2": 0.01}


def args(spelling="NodePowerModel", **models):
    return {"WatcherAddress": "http://watcher:2020", spelling: models}


def normalized(plugin, incoming):
    snapshot = plugin.handle.snapshot()
    values = plugin.score_rows(STATE, incoming, snapshot, snapshot.order)
    return dict(
        zip((item.name for item in snapshot), plugin.normalize_scores(STATE, incoming, values).tolist(), strict=True)
    )


def test_it_keeps_the_contract():
    check_contract(Peaks, args(n0=FALLING, n1=RISING, n3={"k1": -60.5, "k2": 0.02}))


def test_the_node_whose_power_rises_least_wins():
    nodes = [node(name, cpu="10") for name in ("idle", "busy")]
    metrics = node_metrics({"idle": {"CPU": 0}, "busy": {"CPU": 60}})
    # With a falling exponential the first use of a node costs most.
    assert normalized(made(Peaks, *nodes, metrics, args=args(idle=FALLING, busy=FALLING)), pod(cpu="1")) == {
        "idle": 0,
        "busy": 100,
    }
    assert normalized(made(Peaks, *nodes, metrics, args=args(idle=RISING, busy=RISING)), pod(cpu="1")) == {
        "idle": 100,
        "busy": 0,
    }


def test_nodes_of_which_nothing_is_known_count_as_the_best():
    nodes = [node(name, cpu="10") for name in ("known", "no-model", "no-metrics", "full")]
    metrics = node_metrics({"known": {"CPU": 0}, "no-model": {"CPU": 0}, "full": {"CPU": 95}})
    plugin = made(Peaks, *nodes, metrics, args=args(**{"known": RISING, "no-metrics": RISING, "full": RISING}))
    assert normalized(plugin, pod(cpu="1")) == {"known": 0, "no-model": 100, "no-metrics": 100, "full": 100}


def test_without_a_report_all_are_alike():
    assert normalized(made(Peaks, node("a"), node("b"), args=args(a=RISING)), pod(cpu="1")) == {"a": 0, "b": 0}


def test_the_first_cpu_value_counts():
    from podium.objects.node_metrics import MetricsOfNode, NodeMetric, ReportedNodes

    values = [("STD", 3), ("Latest", 0), ("AVG", 95)]
    items = tuple(NodeMetric(type="CPU", operator=operator, value=value) for operator, value in values)
    report = msgspec.structs.replace(node_metrics({}), data=ReportedNodes(by_name={"n1": MetricsOfNode(metrics=items)}))
    assert scores(made(Peaks, node(cpu="10"), report, args=args(n1=RISING)), pod(cpu="1"))["n1"] > 0


def test_a_rise_beyond_all_bounds_is_the_worst():
    metrics = node_metrics({"n1": {"CPU": 0}, "n2": {"CPU": 0}})
    plugin = made(Peaks, node("n1"), node("n2"), metrics, args=args(n1={"k1": 1e300, "k2": 10}, n2=RISING))
    assert normalized(plugin, pod(cpu="1")) == {"n1": 0, "n2": 100}


def test_both_spellings_are_understood_and_not_both_at_once():
    assert typed_args(Peaks, args()) == typed_args(
        Peaks, {"watcherAddress": "http://watcher:2020", "nodePowerModel": {}}
    )
    with pytest.raises(PluginError, match="both spellings"):
        typed_args(Peaks, {"WatcherAddress": "a", "watcherAddress": "a"})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "invalid MetricProvider.Type, got"),
        ({"WatcherAddress": "a", "NodePowerModel": {"n1": {"k3": 1}}}, "k3"),
        ({"WatcherAddress": "a", "NodePowerModel": {"n1": {"k1": "10"}}}, "k1"),
        ({"WatcherAddress": "a", "metricProvider": {}}, "unknown field"),
    ],
)
def test_args_that_cannot_be_used(value, message):
    with pytest.raises(PluginError, match=message):
        typed_args(Peaks, value)


def test_models_come_from_the_configuration_only(tmp_path, monkeypatch):
    """Upstream reads a file that the environment names, and drops what it read where the map is absent."""
    models = tmp_path / "models.json"
    models.write_text('{"a": {"k0": 0, "k1": 10, "k2": 0.01}}')
    monkeypatch.setenv("NODE_POWER_MODEL", str(models))
    metrics = node_metrics({"a": {"CPU": 0}})
    for value in ({"WatcherAddress": "http://watcher:2020"}, args()):
        assert scores(made(Peaks, node("a"), metrics, args=value), pod(cpu="1")) == {"a": 0}


def test_overhead_counts_for_pods_only_that_request_cpu_themselves():
    plugin = made(Peaks, node("a", cpu="10"), node_metrics({"a": {"CPU": 0}}), args=args(a=RISING))

    def with_overhead(cpu):
        item = pod(cpu=cpu)
        return Pod(metadata=item.metadata, spec=msgspec.structs.replace(item.spec, overhead={"cpu": "500m"}))

    assert scores(plugin, with_overhead("0")) == {"a": 0}
    assert scores(plugin, with_overhead("500m")) == scores(plugin, pod(cpu="1"))
