"""Recorded questions about pods that may not fit, one JSON object each, and what would make them fit.

The format is that of `podium evaluate`: the objects of a cluster, a pod, and perhaps a configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from podium.cluster import CacheError
from podium.config import ConfigError, KubeSchedulerConfiguration
from podium.engine.configurations import Configurations
from podium.engine.errors import ClusterError
from podium.engine.manifests import read_manifest
from podium.engine.store import ObjectStore
from podium.framework.contract.interface import Plugin
from podium.framework.contract.status import PluginError, ScheduleError
from podium.insight.cluster import Cluster
from podium.objects.errors import FieldError
from podium.objects.resource_types import PODS
from podium.plugins import IN_TREE


class Case(msgspec.Struct):
    """One question."""

    id: str | int = ""
    objects: list[Any] | None = None
    pod: Any = None
    config: dict[str, Any] | None = None


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
        """The answer to a question in a line of a file: `id`, then `fits` and `fixes`, or `error`.

        Args:
            name: what to call the question if it has no id, or cannot be read.
        """
        try:
            case = msgspec.json.decode(line, type=Case)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return {"id": name, "error": f"not a scenario: {error}"}
        try:
            return {"id": str(case.id) or name, **self._answer(case)}
        except (ClusterError, ConfigError, PluginError, ScheduleError, CacheError, FieldError) as error:
            return {"id": str(case.id) or name, "error": str(error)}

    def _answer(self, case: Case) -> dict[str, Any]:
        pod = read_manifest(case.pod, PODS)
        store = ObjectStore.of(each for each in case.objects or () if isinstance(each, dict))
        store.put(PODS, pod)
        cluster = Cluster(self._configurations.of(case.config), store, self._classes, asked=[pod.key])
        found = cluster.fixes(pod)
        return {"fits": found.fits, "fixes": [each.as_dict() for each in found.fixes]}
