"""Scores of LoadVariationRiskBalancing by its formula."""

from __future__ import annotations

import pytest

from podium.objects.node_metrics import MetricsOfNode, NodeMetric, NodeMetricsReport, ReportedNodes
from podium.plugins.contrib.load_variation_risk_balancing import LoadVariationRiskBalancing
from podium.testing import check_contract, node, node_metrics, pod
from tests.unit.plugins.contrib.loads import WATCHER, made, scores


def test_it_keeps_the_contract():
    check_contract(LoadVariationRiskBalancing)
    check_contract(LoadVariationRiskBalancing, {"safeVarianceMargin": 0.5, "safeVarianceSensitivity": 0}, clusters=5)


def test_the_worse_of_cpu_and_memory_counts():
    nodes = [node(name, cpu="10", memory="10Gi") for name in ("idle", "cpu", "memory", "unsteady", "unknown")]
    metrics = node_metrics(
        {
            "idle": {"CPU": 0, "Memory": 0},
            "cpu": {"CPU": 80, "Memory": 10},
            "memory": {"CPU": 10, "Memory": 60},
            "unsteady": {"CPU": 20, "Memory": 20},
        },
        deviations={"unsteady": {"CPU": 40}},
    )
    plugin = made(LoadVariationRiskBalancing, *nodes, metrics)
    # The pod requests a tenth of a node.
    assert scores(plugin, pod(cpu="1", memory="1Gi")) == {
        "idle": 95,
        "cpu": 55,
        "memory": 65,
        "unsteady": 65,
        "unknown": 0,
    }


def test_one_type_of_metrics_is_enough():
    metrics = node_metrics({"n1": {"CPU": 50}})
    assert scores(made(LoadVariationRiskBalancing, node(), metrics), pod()) == {"n1": 75}


@pytest.mark.parametrize(
    ("margin", "sensitivity", "score"),
    [(1, 1, 50), (0, 1, 60), (2, 1, 40), (-1, 1, 50), (1, 2, 38), (1, -1, 50), (1, 0, 60), (100, 1, 10)],
)
def test_the_deviation_is_sharpened_and_multiplied(margin, sensitivity, score):
    metrics = node_metrics({"n1": {"CPU": 80}}, deviations={"n1": {"CPU": 20}})
    args = {**WATCHER, "safeVarianceMargin": margin, "safeVarianceSensitivity": sensitivity}
    assert scores(made(LoadVariationRiskBalancing, node(), metrics, args=args), pod()) == {"n1": score}


@pytest.mark.parametrize(
    ("metrics", "score"),
    [
        ([("AVG", 50), ("AVG", 60), ("Latest", 90)], 70),
        ([("Latest", 90), ("", 60), ("Unknown", 5)], 70),
        ([("Latest", 60), ("AVG", 40)], 80),
        ([("Unknown", 90)], 100),
        ([("STD", 40), ("STD", 20)], 90),
        ([("AVG", 150)], 50),
    ],
)
def test_which_values_count(metrics, score):
    items = tuple(NodeMetric(type="CPU", operator=operator, value=value) for operator, value in metrics)
    data = ReportedNodes(by_name={"n1": MetricsOfNode(metrics=items)})
    report = NodeMetricsReport(metadata=node_metrics({}).metadata, data=data)
    assert scores(made(LoadVariationRiskBalancing, node(), report), pod()) == {"n1": score}


def test_a_node_without_the_resource_scores_0():
    assert scores(made(LoadVariationRiskBalancing, node(cpu="0"), node_metrics({"n1": {"CPU": 5}})), pod()) == {"n1": 0}
