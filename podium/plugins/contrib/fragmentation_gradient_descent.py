"""FragmentationGradientDescent: prefers nodes where the pod leaves least that the usual pods cannot use.

A free part of a GPU is a fragment for a kind of pod that cannot have it: the GPU has too little left, or its node too
little cpu, or too few such GPUs. The fragments of a node are their mean over the usual kinds of pods.

Runs at: Filter, Score, Reserve, PreBind.
Verdict: Unschedulable for a node without enough free devices.
Requeue: a pod goes, or a node is added or offers more.
Cost: one step for each kind of pod, for each node whose pods have changed; equal nodes share it.
Source: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent"
(USENIX ATC 2023), and its simulator.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated

import msgspec

from podium.cluster import NodeInfo
from podium.framework import contract as fwk
from podium.objects.resource_names import CPU
from podium.plugins.contrib.gpu_devices import WHOLE, GpuArgs, GpuDemand, GpuPlugin, pack

_NODES_KEPT = 100_000
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**31)]
Free = tuple[int, ...]


class UsualPod(msgspec.Struct, frozen=True, rename="camel"):
    """A kind of pod: its demand, the models of GPUs that it runs on (none: any), and its share of all pods."""

    cpu_milli: _Count = 0
    gpus: _Count = 0
    milli: Annotated[int, msgspec.Meta(ge=0, le=WHOLE)] = WHOLE
    models: tuple[str, ...] = ()
    weight: Annotated[float, msgspec.Meta(gt=0, le=1e9)] = 1.0


class FragmentationGradientDescentArgs(GpuArgs, frozen=True, kw_only=True):
    """The plugin's args: the usual pods, and the label of nodes with the model of their GPUs."""

    usual_pods: Annotated[tuple[UsualPod, ...], msgspec.Meta(min_length=1, max_length=1000)]
    model_label: str = "nvidia.com/gpu.product"


class FragmentationGradientDescent(GpuPlugin):
    """Scores by how much the fragments of the node shrink or grow with the pod; 50 if they stay as they are."""

    Args = FragmentationGradientDescentArgs
    args: FragmentationGradientDescentArgs

    def __init__(self, args: FragmentationGradientDescentArgs, handle: fwk.Handle) -> None:
        super().__init__(args, handle)
        total = math.fsum(kind.weight for kind in args.usual_pods)
        total = 1.0 if math.isclose(total, 1.0) else total
        self._kinds = [(kind, kind.weight / total) for kind in args.usual_pods]
        self._fragments_of = lru_cache(_NODES_KEPT)(self._fragments)

    def score_devices(self, node: NodeInfo, free: Free, demand: GpuDemand) -> int:
        """Return the best score over the devices that the pod could have."""
        return max((score for score, _ in self._ways(node, free, demand, node.requested(CPU))), default=0)

    def choose(self, node: NodeInfo, free: Free, demand: GpuDemand) -> Free:
        """Return the devices with the best score, the first of these. The pod's cpu counts on the node already."""
        in_use_milli = node.requested(CPU) - demand.cpu_milli
        ways = self._ways(node, free, demand, in_use_milli)
        return max(ways, key=lambda way: way[0], default=(0, ()))[1]

    def _ways(self, node: NodeInfo, free: Free, demand: GpuDemand, in_use_milli: int) -> Iterator[tuple[int, Free]]:
        model, cpu_milli = node.labels.get(self.args.model_label, ""), node.allocatable(CPU) - in_use_milli
        fragments = self._fragments_of(cpu_milli, tuple(sorted(free)), model)
        is_part = demand.gpus == 1 and demand.milli < WHOLE
        enough = ((device,) for device, milli in enumerate(free) if milli >= demand.milli)
        for devices in enough if is_part else [pack(free, demand)]:
            remainder = tuple(sorted(free[at] - demand.milli * (at in devices) for at in range(len(free))))
            growth = self._fragments_of(cpu_milli - demand.cpu_milli, remainder, model) - fragments
            yield int(1 / (1 + math.exp(growth / WHOLE)) * fwk.MAX_NODE_SCORE), devices

    def _fragments(self, cpu_milli: int, free: Free, model: str) -> float:
        """Return the thousandths of GPUs on a node that are fragments, on average over the usual pods."""
        # Summed up by cause, in the order of the simulator: a tie of two nodes would hang on another rounding.
        causes = [0.0] * 6
        for kind, share in self._kinds:
            enough = [milli for milli in free if milli >= kind.milli]
            lacks_gpus, lacks_cpu = len(enough) < kind.gpus, cpu_milli < kind.cpu_milli
            if not kind.gpus:
                cause = 4 if lacks_cpu else 3
            elif kind.models and model not in kind.models:
                cause = 5
            else:
                cause = (0 if lacks_cpu else 1) if lacks_gpus else (2 if lacks_cpu else 1)
            # Where nothing is lacking, only GPUs with too little left are fragments.
            fits = cause == 1 and not lacks_gpus
            causes[cause] += share * (sum(free) - sum(enough) if fits else sum(free))
        return sum(causes)
