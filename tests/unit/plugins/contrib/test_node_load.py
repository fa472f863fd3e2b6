"""NodeLoad: hot nodes take no pods, idle ones come first, and pods that were just placed count already."""

from __future__ import annotations

import msgspec
import pytest

from podium.framework.contract.cluster_event import QueueingHint
from podium.framework.contract.status import Code, PluginError
from podium.framework.profile.plugin_args import typed_args
from podium.objects.node_metrics import NODE_METRICS
from podium.objects.resource_types import PODS
from podium.plugins.contrib.node_load import NodeLoad
from podium.testing import check_contract, node, node_metrics, pod
from tests.unit.plugins.contrib.loads import STATE, WATCHER, made, scores

NODES = [node(name, cpu="10", memory="10Gi") for name in ("idle", "warm", "hot", "unknown")]
LOADS = {"idle": {"CPU": 0, "Memory": 0}, "warm": {"CPU": 50, "Memory": 20}, "hot": {"CPU": 86, "Memory": 91}}
PROMETHEUS = {"metricProvider": {"type": "Prometheus", "address": "http://prometheus"}}
POWER = {"name": "power", "expr": "sum by (node) (watts)", "threshold": 300, "full": 400}


def rejections(plugin, incoming):
    """The reason by rejected node, which must be the same in both forms."""
    snapshot = plugin.handle.snapshot()
    verdicts = plugin.filter_rows(STATE, incoming, snapshot, snapshot.order)
    reasons = {}
    for at, item in enumerate(snapshot):
        status = plugin.filter(STATE, incoming, item)
        verdict = 0 if verdicts is None else int(verdicts[at])
        assert status == (plugin.explain(STATE, incoming, verdict) if verdict else None)
        if status is not None:
            assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
            reasons[item.name] = status.message
    return reasons


def test_it_keeps_the_contract():
    check_contract(
        NodeLoad, {"loads": [{"name": "cpu", "threshold": 40}, {"name": "memory", "threshold": 70, "weight": 3}]}
    )
    check_contract(NodeLoad, {**PROMETHEUS, "loads": [POWER]}, clusters=3)


def test_hot_nodes_take_no_pods_and_unknown_ones_do():
    plugin = made(NodeLoad, *NODES, node_metrics(LOADS))
    assert rejections(plugin, pod()) == {"hot": "node(s) were above 85 % of cpu, as measured"}


def test_idle_nodes_come_first():
    plugin = made(NodeLoad, *NODES, node_metrics(LOADS))
    # cpu and memory count alike; the pod requests a tenth of the cpu.
    assert scores(plugin, pod(cpu="1")) == {"idle": 95, "warm": 60, "hot": 6, "unknown": 0}


def test_weights_and_any_expression():
    metrics = node_metrics({"idle": {"power": 100, "CPU": 90}, "hot": {"power": 301}})
    plugin = made(NodeLoad, *NODES, metrics, args={**PROMETHEUS, "loads": [POWER, {"name": "cpu", "weight": 0}]})
    assert rejections(plugin, pod()) == {"hot": "node(s) were above 300 of power, as measured"}
    assert scores(plugin, pod(cpu="5")) == {"idle": 75, "warm": 0, "hot": 24, "unknown": 0}


def placed(name, when, node_name="warm"):
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": when}
    return pod(name, node=node_name, cpu="4", status={"conditions": [condition]})


def test_pods_just_placed_count_until_the_metrics_show_them():
    # The metrics end at 00:10:00, and show a pod two minutes after it was placed.
    metrics = node_metrics(LOADS, end=1767226200)
    seen, unseen = placed("a", "2026-01-01T00:08:00Z"), placed("b", "2026-01-01T00:08:01Z")
    assert rejections(made(NodeLoad, *NODES, seen, metrics), pod()).keys() == {"hot"}
    assert rejections(made(NodeLoad, *NODES, unseen, metrics), pod()).keys() == {"hot", "warm"}
    settled = made(NodeLoad, *NODES, unseen, metrics, args={**WATCHER, "settlingSeconds": 60})
    assert rejections(settled, pod()).keys() == {"hot"}


def test_the_handle_may_bring_pods_and_reports_later():
    plugin = made(NodeLoad, *NODES, node_metrics(LOADS, end=1767226200))
    store = plugin.handle.lister_of.__self__
    assert rejections(plugin, pod()).keys() == {"hot"}
    store.put(PODS, placed("b", "2026-01-01T00:10:05Z"))
    assert rejections(plugin, pod()).keys() == {"hot", "warm"}
    store.put(NODE_METRICS, node_metrics(LOADS, end=1767226800))
    assert rejections(plugin, pod()).keys() == {"hot"}
    store.put(PODS, placed("c", "2026-01-01T00:20:00Z"))
    assert rejections(plugin, pod()).keys() == {"hot", "warm"}
    store.drop(PODS, placed("c", "2026-01-01T00:20:00Z"))
    assert rejections(plugin, pod()).keys() == {"hot"}


def test_a_pod_counts_from_the_moment_at_which_its_node_is_chosen():
    plugin = made(NodeLoad, *NODES, node_metrics(LOADS))
    incoming = pod("b", cpu="4")
    plugin.reserve(STATE, incoming, "warm")
    assert rejections(plugin, pod()).keys() == {"hot", "warm"}
    # Its binding is seen, which changes nothing; another pod of the attempt is taken back.
    plugin.handle.lister_of.__self__.put(PODS, incoming.on_node("warm"))
    plugin.reserve(STATE, pod("c", cpu="9"), "idle")
    assert rejections(plugin, pod()).keys() == {"hot", "warm", "idle"}
    plugin.unreserve(STATE, pod("c"), "idle")
    plugin.unreserve(STATE, pod("never-reserved"), "idle")
    assert rejections(plugin, pod()).keys() == {"hot", "warm"}


@pytest.mark.parametrize(("when_stale", "hot"), [("skip", set()), ("score", {"hot"})])
def test_stale_metrics_are_skipped_or_scored_as_the_args_say(when_stale, hot):
    report = msgspec.structs.replace(node_metrics(LOADS), fetched_s=1_700_000_000.0)
    plugin = made(NodeLoad, *NODES, report, args={**WATCHER, "whenStale": when_stale, "staleAfterSeconds": 60})
    assert rejections(plugin, pod()).keys() == {"hot"}
    plugin.handle.clock.advance(61)
    assert rejections(plugin, pod()).keys() == hot
    assert (scores(plugin, pod())["idle"] > 0) is bool(hot)


def test_without_metrics_all_nodes_pass():
    plugin = made(NodeLoad, *NODES)
    assert rejections(plugin, pod()) == {}
    assert set(scores(plugin, pod()).values()) == {0}


def test_details_say_how_hot_and_how_old():
    report = msgspec.structs.replace(node_metrics(LOADS), fetched_s=1_700_000_000.0)
    plugin = made(NodeLoad, *NODES, report)
    plugin.handle.clock.advance(12)
    snapshot = plugin.handle.snapshot()
    assert plugin.rejection_details(pod(), snapshot, snapshot.order) == {
        "cpu at 86 %, measured 12 s ago": 1,
        "memory at 91 %, measured 12 s ago": 1,
    }


@pytest.mark.parametrize(
    ("cpu", "hint"), [(80, QueueingHint.QUEUE), (90, QueueingHint.SKIP), (None, QueueingHint.QUEUE)]
)
def test_a_report_requeues_pods_if_a_node_has_cooled(cpu, hint):
    before = node_metrics({"n1": {"CPU": 90}})
    after = node_metrics({} if cpu is None else {"n1": {"CPU": cpu}, "n2": {"CPU": 99}})
    assert made(NodeLoad, *NODES).after_report(pod(), before, after) is hint


def test_the_first_report_requeues_pods():
    assert made(NodeLoad, *NODES).after_report(pod(), None, node_metrics(LOADS)) is QueueingHint.QUEUE


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"loads": []}, "loads"),
        ({"loads": [{"name": "gpu"}]}, "'gpu' has no expr"),
        ({"loads": [POWER]}, "an expr needs metricProvider.type Prometheus"),
        ({**PROMETHEUS, "loads": [POWER, POWER]}, "'power' is there twice"),
        ({"loads": [{"name": "cpu", "threshold": -1}]}, "threshold"),
        ({"loads": [{"name": "cpu", "full": 0}]}, "full"),
        ({"loads": [{"name": "cpu", "treshold": 1}]}, "treshold"),
        ({"whenStale": "drop"}, "whenStale|when_stale"),
    ],
)
def test_args_that_cannot_be_used(args, message):
    with pytest.raises(PluginError, match=message):
        typed_args(NodeLoad, args)
