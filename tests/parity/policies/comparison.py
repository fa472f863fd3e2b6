"""What is compared of the answers of scheduler-plugins, which is built on Kubernetes 1.35, and of podium's.

Scores of in-tree plugins and totals are not compared, nor the part of a message that DynamicResources adds.
"""

from __future__ import annotations

import re
from typing import Any

from podium.config import EVALUATED, default_configuration, default_gates
from podium.insight.evaluate import Evaluator
from podium.plugins import IN_TREE
from podium.plugins.contrib import CONTRIB
from tests.parity.recorded import without_empty

_OF_DYNAMIC_RESOURCES = re.compile(r"(no new claims to deallocate|still not schedulable)(, )?")
_TEXTS = ("error", "fit_error", "message")
_NAMES = ("prefilter_nodes", "feasible", "victims")
_AS_THEY_ARE = ("prefilter", "filter", "nominated", "placements")


def evaluator(now_s: float) -> Evaluator:
    """Return what answers as their release at a time, in seconds since the epoch."""
    return Evaluator({**IN_TREE, **CONTRIB}, default_configuration(default_gates(EVALUATED["1.35"])), now_s)


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
