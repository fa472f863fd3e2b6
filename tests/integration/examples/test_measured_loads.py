"""The example configurations of policies, each on a cluster where it makes a difference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from podium.insight.evaluate import Evaluator
from podium.plugins import IN_TREE
from podium.plugins.contrib import CONTRIB
from tests import manifests

CONFIGS = Path(__file__).parents[3] / "examples" / "config"


def node(name, **amounts):
    manifest = manifests.node(name, cpu="8", memory="16Gi")
    for field in ("capacity", "allocatable"):
        manifest["status"][field] |= amounts
    return manifest


def pod(name, requests, index="", **fields):
    manifest = manifests.pod(name, **fields)
    manifest["spec"]["containers"][0]["resources"]["requests"] |= requests
    manifest["metadata"]["annotations"] = {"podium.io/gpu-index": index} if index else {}
    return manifest


def loads(**averages):
    nodes = {}
    for name, (average, deviation) in averages.items():
        values = [("CPU", "AVG", average), ("CPU", "STD", deviation), ("Memory", "AVG", 10), ("power", "Latest", 100)]
        metrics = [{"type": type_, "operator": operator, "value": value} for type_, operator, value in values]
        nodes[name.replace("_", "-")] = {"metrics": metrics}
    return {"window": {"end": 1_000_000}, "data": {"NodeMetricsMap": nodes}}


def node_for(example, requests, nodes, metrics=None, running=()):
    """Where the example's profile places a pod."""
    config = yaml.safe_load((CONFIGS / f"{example}.yaml").read_text())
    question = {"objects": [*nodes, *running], "pods": [pod("web", requests)], "config": config}
    question |= {} if metrics is None else {"metrics": metrics}
    answer = Evaluator({**IN_TREE, **CONTRIB}).answer_line(json.dumps(question).encode(), example)
    assert "error" not in answer, answer
    return answer["placements"][0]["node"]


THREE = [node(name) for name in ("n1", "n2", "n3")]
CPU = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("example", "metrics", "chosen"),
    [
        ("node-load", loads(n1=(95, 0), n2=(20, 0), n3=(60, 0)), "n2"),
        ("target-load-packing", loads(n1=(90, 0), n2=(5, 0), n3=(20, 0)), "n3"),
        ("load-variation-risk-balancing", loads(n1=(40, 40), n2=(40, 1), n3=(80, 0)), "n2"),
        # The first two draw most for their first pods.
        ("peaks", loads(n1=(60, 0), n2=(0, 0), n3=(70, 0)), "n1"),
    ],
)
def test_measured_loads(example, metrics, chosen):
    assert node_for(example, CPU, THREE, metrics) == chosen


def test_pods_that_use_more_than_they_request():
    running = []
    for item in THREE:
        manifest = pod(f"on-{item['metadata']['name']}", {"cpu": "2"}, node=item["metadata"]["name"])
        manifest["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "8"}
        running.append(manifest)
    metrics = loads(n1=(90, 0), n2=(50, 10), n3=(10, 0))
    assert node_for("low-risk-over-commitment", CPU, THREE, metrics, running) == "n3"


GPUS = [node(name, **{"nvidia.com/gpu": "2", "podium.io/gpu-milli": "2000"}) for name in ("n1", "n2", "n3")]
IN_USE = [
    pod("a", {"podium.io/gpu-milli": "500"}, "0", node="n2"),
    pod("b", {"podium.io/gpu-milli": "900"}, "0", node="n3"),
]


@pytest.mark.parametrize("example", ["gpu-packing", "fragmentation-gradient-descent"])
def test_parts_of_gpus(example):
    assert node_for(example, {"podium.io/gpu-milli": "500"}, GPUS, running=IN_USE) == "n2"
