"""What is compared of the answers of scheduler-plugins, which is built on Kubernetes 1.35, and of podium's.

Scores of in-tree plugins and totals are not compared, since a later Kubernetes answers here, nor the part of a message
that DynamicResources adds. Queues are placed with the one score that is computed in another way since 1.35.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.config import FIRST, default_configuration, default_gates
from podium.framework.contract.cycle_state import CycleState
from podium.insight.evaluate import Evaluator
from podium.objects.core import Pod
from podium.objects.requests import pod_requests
from podium.plugins import IN_TREE
from podium.plugins.contrib import CONTRIB
from podium.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from tests.parity.recorded import without_empty

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


_CLASSES = {**IN_TREE, **CONTRIB}


class Answers:
    """podium's answers at a time, in seconds since the epoch."""

    def __init__(self, now_s: float) -> None:
        # The release next to theirs.
        config = default_configuration(default_gates(FIRST))
        self._of_pods = Evaluator(_CLASSES, config, now_s)
        self._of_queues = Evaluator({**_CLASSES, BalancedAllocationOf135.name: BalancedAllocationOf135}, config, now_s)

    def answer(self, question: dict[str, Any], line: bytes) -> dict[str, Any]:
        evaluator = self._of_queues if "pods" in question else self._of_pods
        return comparable(evaluator.answer_line(line, question["id"]))


def comparable(answer: dict[str, Any]) -> dict[str, Any]:
    """The parts of an answer that depend on the plugins of this kind."""
    parts = {name: _OF_DYNAMIC_RESOURCES.sub("", answer.get(name) or "").rstrip(" ,") for name in _TEXTS}
    parts |= {name: sorted(answer.get(name) or []) for name in _NAMES}
    parts |= {name: answer.get(name) for name in _AS_THEY_ARE}
    parts["scores"] = {
        node: {plugin: score for plugin, score in scores["plugins"].items() if plugin in CONTRIB}
        for node, scores in (answer.get("scores") or {}).items()
    }
    return without_empty(parts)
