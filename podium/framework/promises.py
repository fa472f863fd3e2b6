"""What the nodes have been promised: pods that preemption has nominated, as they count for one attempt.

Owns the worlds in which nominated pods are on their nodes already. Never decides what that means for the pod.

Source: kubernetes pkg/scheduler/framework/runtime/framework.go (addGENominatedPods), v1.36.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from podium.cluster import IntArray, Rows, Snapshot
from podium.cluster.footprint import footprint_as_far_as_readable
from podium.cluster.snapshot import BoolArray
from podium.kube.objects import Pod


class NominatedPods(Protocol):
    """Pods that preemption has promised a node to."""

    def ahead_of(self, pod: Pod) -> Mapping[str, Sequence[Pod]]:
        """By node name, the other nominated pods of at least this pod's priority."""

    def ahead_on(self, pod: Pod, node_name: str) -> Sequence[Pod]:
        """Those of one node."""


class NoNominatedPods:
    """A world in which nothing is promised."""

    def ahead_of(self, pod: Pod) -> Mapping[str, Sequence[Pod]]:
        """Nothing."""
        del pod
        return {}

    def ahead_on(self, pod: Pod, node_name: str) -> Sequence[Pod]:
        """Nothing."""
        del pod, node_name
        return ()


class Promises:
    """What is promised to pods ahead of this one, on the nodes of one snapshot.

    Cost: nothing until it is asked for; all nodes together then cost a microsecond for each nominated pod.
    """

    def __init__(self, pod: Pod, snapshot: Snapshot, nominated: NominatedPods) -> None:
        self._pod = pod
        self._snapshot = snapshot
        self._nominated = nominated

    def on(self, row: int) -> Sequence[Pod]:
        """The pods that one node is promised to."""
        return self._nominated.ahead_on(self._pod, self._snapshot.name(row))

    @cached_property
    def _pods(self) -> tuple[Rows, list[Pod]]:
        """Every promise, and the row it holds for."""
        row_of = self._snapshot.row_of
        rows: list[int] = []
        pods: list[Pod] = []
        for name, promised in self._nominated.ahead_of(self._pod).items():
            row = row_of.get(name)
            if row is not None:
                rows += [row] * len(promised)
                pods += promised
        return np.array(rows, np.intp), pods

    def __bool__(self) -> bool:
        return len(self._pods[0]) > 0

    @cached_property
    def column(self) -> BoolArray:
        """By row, whether the node is promised to anybody."""
        column = np.zeros(len(self._snapshot.nodes), np.bool_)
        column[self._pods[0]] = True
        return column

    @cached_property
    def _usage(self) -> IntArray:
        return self._snapshot.usage_of(map(footprint_as_far_as_readable, self._pods[1]))

    def counted(self, snapshot: Snapshot) -> Snapshot:
        """A private world like that one, where usage counts all promises."""
        usage = self._usage  # first: it may bring resources with it that no node has heard of
        world = snapshot.fork_usage()
        world.add_usage(self._pods[0], usage)
        return world
