"""Recorded answers of scheduler-plugins (2026-08, on Kubernetes 1.35.4) about its own plugins: podium's are the same.

Scores of in-tree plugins and totals are not compared, since a later Kubernetes answers here, nor the part of a message
that DynamicResources adds. Queues are placed with the one score that is computed in another way since 1.35.
"""

from __future__ import annotations

import functools
import gzip
import json
import re
from typing import Any

import numpy as np
import pytest

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.framework.contract.cycle_state import CycleState
from podium.insight.evaluate import Evaluator
from podium.objects.core import Pod
from podium.objects.requests import pod_requests
from podium.objects.times import parse_time
from podium.plugins import IN_TREE
from podium.plugins.contrib import CONTRIB
from podium.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from tests.parity.recorded import DATA, differences, without_empty

CATEGORIES = (
    "quota",
    "numa",
    "allocatable",
    "toleration",
    "metadata",
    "podstate",
    "qos",
    "network",
    "load-target",
    "load-variation",
    "load-risk",
    "load-peaks",
)
RECORDED_S = parse_time("2026-08-16T00:00:00Z")

_OF_DYNAMIC_RESOURCES = re.compile(r"(no new claims to deallocate|still not schedulable)(, )?")
_TEXTS = ("error", "fit_error", "message")
_NAMES = ("prefilter_nodes", "feasible", "victims")
_AS_THEY_ARE = ("prefilter", "filter", "nominated", "placements")


class BalancedAllocationOf135(NodeResourcesBalancedAllocation):
    """Scores by the balance with the pod alone, for pods of cpu and memory, as Kubernetes 1.35 does."""

    name = "NodeResourcesBalancedAllocation"

    def score_rows(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        return np.array([self.score(state, pod, snapshot.node(row)) for row in rows.tolist()], np.int64)

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        cpu, memory = (
            min((node.requested(name) + pod_requests(pod.spec).get(name, 0)) / node.allocatable(name), 1.0)
            for name in ("cpu", "memory")
        )
        return int((1 - abs(cpu - memory) / 2) * 100)


CLASSES = {**IN_TREE, **CONTRIB}
CLASSES_OF_QUEUES = {**CLASSES, BalancedAllocationOf135.name: BalancedAllocationOf135}


@functools.cache
def questions() -> dict[str, list[tuple[dict[str, Any], bytes]]]:
    """Every recorded question with its line, by category."""
    by_category: dict[str, list[tuple[dict[str, Any], bytes]]] = {}
    with gzip.open(DATA / "policies.jsonl.gz") as lines:
        for line in lines:
            question = json.loads(line)
            by_category.setdefault(question["id"].rsplit("-", 2)[0], []).append((question, line))
    return by_category


def compared(answer: dict[str, Any]) -> dict[str, Any]:
    """The parts of an answer that depend on the plugins of this kind."""
    parts = {name: _OF_DYNAMIC_RESOURCES.sub("", answer.get(name) or "").rstrip(" ,") for name in _TEXTS}
    parts |= {name: sorted(answer.get(name) or []) for name in _NAMES}
    parts |= {name: answer.get(name) for name in _AS_THEY_ARE}
    parts["scores"] = {
        node: {plugin: score for plugin, score in scores["plugins"].items() if plugin in CONTRIB}
        for node, scores in (answer.get("scores") or {}).items()
    }
    return without_empty(parts)


@pytest.mark.parametrize("category", CATEGORIES)
def test_podium_answers_as_scheduler_plugins(category):
    evaluators = {
        has_queue: Evaluator(classes, now_s=RECORDED_S)
        for has_queue, classes in ((False, CLASSES), (True, CLASSES_OF_QUEUES))
    }
    for question, line in questions()[category]:
        answer = evaluators["pods" in question].answer_line(line, question["id"])
        assert list(differences(compared(question["expect"]), compared(answer))) == [], question["id"]
