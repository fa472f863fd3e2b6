"""A shadow that is told of changes as watches would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from podium.config import default_configuration
from podium.config.types import Extender
from podium.engine.cluster import Cluster
from podium.engine.manifests import read_manifest, resource_of
from podium.lib.clock import ManualClock
from podium.objects.core import Pod
from podium.plugins import IN_TREE
from podium.recording.shadow.comparison import Comparison
from podium.recording.shadow.report import Disagreement
from podium.recording.shadow.scenarios import scenario_of
from podium.recording.shadow.shadow import Shadow
from tests.manifests import pod

Json = dict[str, Any]


def web(name: str = "web", cpu: str = "1", **fields: Any) -> Json:
    return pod(name, cpu, scheduler="default-scheduler", **fields)


class Following:
    """The shadow, the clock, and the scenarios of its disagreements. Implements `shadow.Listener`."""

    def __init__(self, *objects: Json, extenders: tuple[Extender, ...] = ()) -> None:
        self.clock = ManualClock()
        self.config = replace(default_configuration(), extenders=extenders)
        self.shadow = Shadow(self.config, IN_TREE, self.clock, [self])
        self.skips: list[str] = []
        self.comparisons: list[Comparison] = []
        self.scenarios: list[Json] = []
        self.is_complete = True
        self._version = 0
        self.tell(*objects)

    def on_comparison(self, comparison: Comparison, *, evaluation_s: float, binding_s: float) -> None:
        self.comparisons.append(comparison)

    def on_skip(self, reason: str) -> None:
        self.skips.append(reason)

    def on_disagreement(self, disagreement: Disagreement, pod: Pod, states: Mapping[str, Cluster]) -> None:
        self.scenarios += [scenario_of(disagreement, pod, name, state, self.config) for name, state in states.items()]

    def tell(self, *objects: Json) -> None:
        """Tell of objects that are there or have changed."""
        for manifest in objects:
            self._version += 1
            resource = resource_of(manifest)
            assert resource is not None
            metadata = {**manifest["metadata"], "resourceVersion": str(self._version)}
            item = read_manifest({**manifest, "metadata": metadata}, resource)
            self.shadow.put(resource, item, is_complete=self.is_complete)

    def delete(self, manifest: Json) -> None:
        resource = resource_of(manifest)
        assert resource is not None
        self.shadow.drop(resource, read_manifest(manifest, resource))

    def bind(self, manifest: Json, node: str) -> None:
        self.tell({**manifest, "spec": {**manifest["spec"], "nodeName": node}})

    def settle(self) -> list[Disagreement]:
        """All disagreements so far."""
        self.clock.advance(10.0)
        for _ in self.shadow.settle():
            pass
        return self.shadow.report.disagreements
