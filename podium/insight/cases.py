"""Answers recorded questions about what would make a pod fit, one JSON object each.

The format is that of `podium evaluate`: the objects of a cluster, a pod, and optionally a configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.config import KubeSchedulerConfiguration
from podium.engine.configurations import Configurations
from podium.engine.manifests import read_manifest
from podium.engine.recorded_questions import RecordedQuestion, answer_line
from podium.framework.contract.plugin import Plugin
from podium.insight.cluster import Cluster
from podium.objects.resource_types import PODS
from podium.plugins import IN_TREE


class CaseAnswers:
    """Answers questions independently of each other.

    Args:
        classes: the available plugins by name.
        config: for questions without a configuration of their own; by default upstream's defaults.
    """

    def __init__(
        self, classes: Mapping[str, type[Plugin]] = IN_TREE, config: KubeSchedulerConfiguration | None = None
    ) -> None:
        self._classes = classes
        self._configurations = Configurations(classes, config)

    def answer_line(self, line: bytes, name: str) -> dict[str, Any]:
        """Answer one line with `id`, `fits` and `fixes`, as `podium.engine.recorded_questions.answer_line` does."""
        return answer_line(line, name, RecordedQuestion, self._answer)

    def _answer(self, case: RecordedQuestion) -> dict[str, Any]:
        pod = read_manifest(case.pod, PODS)
        store = case.store()
        store.put(PODS, pod)
        cluster = Cluster(self._configurations.of(case.config), store, self._classes, asked=[pod.key])
        return cluster.fixes(pod).as_dict()
