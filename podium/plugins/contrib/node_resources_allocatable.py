"""NodeResourcesAllocatable: prefers small nodes, or large ones, whatever runs on them.

Runs at: Score.
Verdict: none.
Requeue: none.
Cost: one gather for each configured resource.
Source: sigs.k8s.io/scheduler-plugins pkg/noderesources/allocatable.go (for Kubernetes 1.35).
Differs: sums that leave the range of int64 are computed exactly; upstream's wrap around, which can end the attempt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.framework import contract as fwk
from podium.objects.core import Pod, PodSpec
from podium.objects.quantity import INT64_MAX
from podium.objects.resource_names import CPU, MEMORY
from podium.plugins.contrib.calculations import min_max
from podium.plugins.contrib.plugin_args import PluginArgs, invalid

_LEAST: Final = "Least"
_MOST: Final = "Most"


class ResourceWeight(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A resource, and what one unit of it counts: a millicore of cpu, a byte of memory."""

    name: str = ""
    weight: int = 0


class NodeResourcesAllocatableArgs(PluginArgs, frozen=True, kw_only=True):
    """The plugin's args; names and defaults are upstream's.

    Attributes:
        mode: `Least` prefers small nodes, `Most` large ones.
        resources: by default a millicore counts as much as a MiB.
    """

    mode: str = _LEAST
    resources: tuple[ResourceWeight, ...] = ()

    def problems(self) -> Iterable[str]:
        """Return weights that are not positive, and an unknown mode."""
        for index, resource in enumerate(self.resources):
            if resource.weight <= 0:
                text = f"resource weight of {resource.name} should be a positive value, got :{resource.weight}"
                yield invalid(f"resources[{index}].weight", resource.weight, text)
        if self.mode not in ("", _LEAST, _MOST):
            yield invalid("mode", self.mode, "invalid support ModeType")

    @property
    def weights(self) -> Mapping[str, int]:
        """Return the weight of each resource; of a name that is listed twice the last one."""
        return {resource.name: resource.weight for resource in self.resources} or {CPU: 1 << 20, MEMORY: 1}


class NodeResourcesAllocatable(fwk.TableScorePlugin, fwk.ScorePlugin):
    """Scores by the weighted mean of the allocatable resources."""

    Args = NodeResourcesAllocatableArgs

    def __init__(self, args: NodeResourcesAllocatableArgs, handle: fwk.Handle) -> None:
        super().__init__(args, handle)
        self._weights = args.weights
        self._total_weight = sum(self._weights.values())
        self._sign = 1 if args.mode == _MOST else -1

    def score_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Score with the weighted mean, negative for the mode Least."""
        columns = [(snapshot.allocatable(name).take(rows), weight) for name, weight in self._weights.items()]
        highest = sum(int(column.max(initial=0)) * weight for column, weight in columns)
        exact_type = np.int64 if highest <= INT64_MAX else object
        total = np.zeros(len(rows), exact_type)
        for column, weight in columns:
            total += column.astype(exact_type) * weight
        mean: IntArray = (total // self._total_weight).astype(np.int64)
        return self._sign * mean

    def score(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> int:
        """Score as `score_rows`, for one node."""
        total = sum(node.allocatable(name) * weight for name, weight in self._weights.items())
        return self._sign * (total // self._total_weight)

    def normalize_scores(self, state: fwk.CycleState, pod: Pod, scores: IntArray) -> IntArray:
        """Scale to 0..MAX_NODE_SCORE. Nodes that are all alike get 0."""
        return min_max(scores)

    def score_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return NODE: only allocatable resources count."""
        return fwk.Scope.NODE

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register no event: the plugin rejects no node."""
        return ()
