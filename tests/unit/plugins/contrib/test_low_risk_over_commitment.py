"""Scores of LowRiskOverCommitment: the risk of limits, the risk of use, and what upstream panics at."""

from __future__ import annotations

import msgspec
import pytest

from podium.objects.node_metrics import MetricsOfNode, ReportedNodes
from podium.plugins.contrib.low_risk_over_commitment import LowRiskOverCommitment
from podium.testing import check_contract, node, node_metrics, pod
from tests.unit.plugins.contrib.loads import STATE, WATCHER, made, scores

BY_LIMITS = {**WATCHER, "riskLimitWeights": {"cpu": 1, "memory": 1}}
BY_USE = {**WATCHER, "riskLimitWeights": {"cpu": 0, "memory": 0}}
IDLE = node_metrics({"n1": {"CPU": 0, "Memory": 0}})


def test_it_keeps_the_contract():
    check_contract(LowRiskOverCommitment)


def test_limits_beyond_the_node_are_a_risk_by_how_far_they_exceed_the_requests():
    running = pod("a", node="n1", cpu="2", limits={"cpu": "4"})
    # Limits are 6 of 4 cores, requests 3: two of three cores that are promised beyond the requests are not there.
    plugin = made(LowRiskOverCommitment, node(cpu="4"), running, IDLE, args=BY_LIMITS)
    assert scores(plugin, pod(cpu="1", limits={"cpu": "2"})) == {"n1": 33}


def test_requests_count_as_limits_where_there_are_none():
    plugin = made(LowRiskOverCommitment, node(cpu="4"), pod("a", node="n1", cpu="3"), IDLE, args=BY_LIMITS)
    assert scores(plugin, pod(cpu="1")) == {"n1": 100}


def test_limits_of_init_containers_and_sidecars_count_alone():
    init = {"name": "init", "restartPolicy": "Always", "resources": {"limits": {"cpu": "8"}, "requests": {"cpu": "1"}}}
    incoming = pod(cpu="1", limits={"cpu": "1"}, spec={"initContainers": [init]})
    # Limits are 8 of 4 cores, requests 1: four of seven.
    assert scores(made(LowRiskOverCommitment, node(cpu="4"), IDLE, args=BY_LIMITS), incoming) == {"n1": 43}


def test_use_beyond_the_requests_is_a_risk():
    running = pod("a", node="n1", cpu="2", limits={"cpu": "8"})
    results = {}
    for use in (10, 50, 60, 90):
        metrics = node_metrics({"n1": {"CPU": use}}, deviations={"n1": {"CPU": 0 if use in (50, 60) else 1}})
        plugin = made(LowRiskOverCommitment, node(cpu="4"), running, metrics, args=BY_USE)
        results[use] = scores(plugin, pod(cpu="1"))["n1"]
    # Half of the node is requested: steady use of 50 % stays within, of 60 % does not.
    assert results == {10: 100, 50: 100, 60: 0, 90: 0}


def test_the_deviation_stands_for_several_windows():
    running = pod("a", node="n1", cpu="2", limits={"cpu": "8"})
    metrics = node_metrics({"n1": {"CPU": 40}}, deviations={"n1": {"CPU": 5}})
    values = [
        scores(
            made(LowRiskOverCommitment, node(cpu="4"), running, metrics, args={**BY_USE, "smoothingWindowSize": size}),
            pod(cpu="1"),
        )["n1"]
        for size in (1, 4, 100, 5, 0, -1)
    ]
    assert values[0] > values[1] > values[2]
    assert values[3] == values[4] == values[5]


@pytest.mark.parametrize("weights", [{"cpu": 7, "memory": -1}, {}, {"cpu": 0.5}])
def test_weights_that_make_no_sense_are_a_half(weights):
    running = pod("a", node="n1", cpu="2", limits={"cpu": "4"})
    args = {**WATCHER, "riskLimitWeights": weights}
    plugin = made(LowRiskOverCommitment, node(cpu="4"), running, IDLE, args=args)
    assert scores(plugin, pod(cpu="1", limits={"cpu": "2"})) == {"n1": 67}


def test_a_pod_without_cpu_and_memory_scores_0_everywhere():
    assert scores(made(LowRiskOverCommitment, node(), IDLE), pod(requests={"example.com/gpu": 1})) == {"n1": 0}


def test_a_node_without_metrics_scores_0():
    plugin = made(LowRiskOverCommitment, node("n1"), node("n2"), IDLE)
    assert scores(plugin, pod(cpu="1")) == {"n1": 100, "n2": 0}


def test_a_node_with_an_empty_list_of_metrics_is_judged_by_its_limits():
    by_name = {"empty": MetricsOfNode(metrics=()), "null": MetricsOfNode()}
    report = msgspec.structs.replace(IDLE, data=ReportedNodes(by_name=by_name))
    plugin = made(LowRiskOverCommitment, node("empty"), node("null"), report)
    assert scores(plugin, pod(cpu="1")) == {"empty": 100, "null": 0}


def test_requests_of_other_resources_without_limits_do_no_harm():
    odd = {"attachable-volumes.kubernetes.io/x": 1}
    running = pod("a", node="n1", cpu="1", requests=odd)
    assert scores(made(LowRiskOverCommitment, node(), running, IDLE), pod(cpu="1", requests=odd)) == {"n1": 100}


def test_a_quantity_that_cannot_be_read_fails_the_attempt():
    plugin = made(LowRiskOverCommitment, node(), IDLE)
    snapshot = plugin.handle.snapshot()
    status = plugin.pre_score(STATE, pod(limits={"cpu": "much"}), snapshot, snapshot.order)
    assert "spec.containers[0].resources.limits[cpu]" in status.message


def test_the_sums_follow_pods_that_come_and_go():
    from tests.builders import cache_of

    cache = cache_of(node(cpu="4"), pod("a", node="n1", cpu="2", limits={"cpu": "4"}))
    plugin = made(LowRiskOverCommitment, node(cpu="4"), IDLE, args=BY_LIMITS)
    incoming = pod(cpu="1", limits={"cpu": "2"})

    def score():
        snapshot = cache.snapshot()
        in_fork = plugin.score_rows(STATE, incoming, snapshot.fork(), snapshot.order).tolist()
        assert plugin.score_rows(STATE, incoming, snapshot, snapshot.order).tolist() == in_fork
        return in_fork

    assert score() == [33]
    cache.add_pod(pod("b", node="n1", cpu="1", limits={"cpu": "1"}))
    assert score() == [0]
    cache.drop_pod(pod("a", node="n1"))
    assert score() == [100]
    cache.remove_node("n1")
    cache.put_node(node("n2", cpu="1"))
    assert score() == [0]


def test_a_deviation_too_small_for_a_distribution_is_full_risk():
    """As upstream: the variance is lost beside the mean, and no distribution fits."""
    running = pod("a", node="n1", cpu="2", limits={"cpu": "8"})
    results = {}
    for deviation in (1e-12, 1):
        metrics = node_metrics({"n1": {"CPU": 10}}, deviations={"n1": {"CPU": deviation}})
        plugin = made(LowRiskOverCommitment, node(cpu="4"), running, metrics, args=BY_USE)
        results[deviation] = scores(plugin, pod(cpu="1"))["n1"]
    assert results == {1e-12: 0, 1: 100}
