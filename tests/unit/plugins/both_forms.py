"""The contract between a plugin's two forms, and the configurations of in-tree plugins that are held to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from podium.cluster import Rows, Snapshot
from podium.config.args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    RequestedToCapacityRatio,
    ResourceSpec,
    ScoringStrategy,
    TopologySpreadConstraint,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.filter import FilterPlugin, PreFilterPlugin, TableFilterPlugin
from podium.framework.contract.score import MAX_NODE_SCORE, PreScorePlugin, ScorePlugin, TableScorePlugin
from podium.framework.contract.status import SKIP, Status
from podium.objects.core import Pod
from podium.plugins import IN_TREE
from tests.unit.plugins.random_clusters import GPU, HOST, PREFERRED, REQUIRED, ZONE, RandomCluster, incoming

RESOURCES = tuple(ResourceSpec(name, weight) for weight, name in enumerate(("cpu", "memory", GPU), start=1))
SHAPE = RequestedToCapacityRatio(
    (UtilizationShapePoint(10, 0), UtilizationShapePoint(60, 9), UtilizationShapePoint(90, 2))
)
ADDED = {
    REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "Exists"}]}]},
    PREFERRED: [{"weight": 7, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}],
}
SPREAD = (TopologySpreadConstraint(2, ZONE, "DoNotSchedule"), TopologySpreadConstraint(1, HOST, "ScheduleAnyway"))


def fit_args(strategy: str, **args: Any) -> NodeResourcesFitArgs:
    return NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(strategy, RESOURCES, SHAPE), **args)


CONFIGURED: Mapping[str, tuple[Any, ...]] = {
    "NodeUnschedulable": (None,),
    "NodeName": (None,),
    "TaintToleration": (None,),
    "NodeAffinity": (NodeAffinityArgs(), NodeAffinityArgs(ADDED)),
    "NodePorts": (None,),
    "NodeResourcesFit": (
        NodeResourcesFitArgs(),
        fit_args(LEAST_ALLOCATED, ignored_resource_groups=("example.com",)),
        fit_args(MOST_ALLOCATED),
        fit_args(REQUESTED_TO_CAPACITY_RATIO),
    ),
    "NodeResourcesBalancedAllocation": (
        NodeResourcesBalancedAllocationArgs(),
        NodeResourcesBalancedAllocationArgs(RESOURCES),
    ),
    "ImageLocality": (None,),
    "PodTopologySpread": (PodTopologySpreadArgs(), PodTopologySpreadArgs(SPREAD, "List")),
    "InterPodAffinity": (InterPodAffinityArgs(), InterPodAffinityArgs(50, True)),
    "VolumeRestrictions": (None,),
    "NodeVolumeLimits": (None,),
    "VolumeBinding": (VolumeBindingArgs(),),
    "VolumeZone": (None,),
    "DynamicResources": (DynamicResourcesArgs(),),
    "NodeDeclaredFeatures": (None,),
}
"""Every in-tree plugin that has both forms, with the args to try."""


def hold_to_contract(cluster: RandomCluster, keywords: Mapping[str, Any], row_count: int) -> set[str]:
    """All plugins, asked about so many of the nodes in another than their usual order.

    Returns: the plugins that rejected a node, or gave it a score.
    """
    outspoken = set()
    snapshot, pod = cluster.snapshot(), incoming(dict(keywords))
    handle = cluster.handle(snapshot)
    rows = snapshot.order[::-1][:row_count].copy()
    for name, variants in CONFIGURED.items():
        for args in variants:
            forms = _Forms(IN_TREE[name](args, handle), pod, snapshot, rows, f"{name} with {args}")
            if any([forms.filter_alike(), forms.score_alike()]):
                outspoken.add(name)
    return outspoken


class _Forms:
    """One plugin in one attempt; each form has a state of its own, so that neither lives on what the other found."""

    def __init__(self, plugin: Any, pod: Pod, snapshot: Snapshot, rows: Rows, called: str) -> None:
        self.plugin, self.pod, self.snapshot, self.rows, self.called = plugin, pod, snapshot, rows, called
        self.of_table, self.of_nodes = CycleState(), CycleState()
        self.outcome = self._pre_filter(self.of_table)
        assert self._pre_filter(self.of_nodes) == self.outcome, called

    def _pre_filter(self, state: CycleState) -> Status | None:
        if not isinstance(self.plugin, PreFilterPlugin):
            return None
        status: Status | None = self.plugin.pre_filter(state, self.pod, self.snapshot)[1]
        return status

    def filter_alike(self) -> bool:
        """Returns: whether it rejects a node."""
        plugin = self.plugin
        if self.outcome is not None or not isinstance(plugin, FilterPlugin):
            return False
        one_by_one = [plugin.filter(self.of_nodes, self.pod, self.snapshot.node(row)) for row in self.rows]
        assert self._by_table() == one_by_one, self.called
        return any(one_by_one)

    def _by_table(self) -> list[Status | None]:
        assert isinstance(self.plugin, TableFilterPlugin)
        verdicts = self.plugin.filter_rows(self.of_table, self.pod, self.snapshot, self.rows)
        if verdicts is None:
            return [None] * len(self.rows)
        assert verdicts.dtype == np.int64
        return [self.plugin.explain(self.of_table, self.pod, int(verdict)) if verdict else None for verdict in verdicts]

    def score_alike(self) -> bool:
        """Returns: whether it gives a node a score."""
        plugin = self.plugin
        rejects_pod = self.outcome is not None and self.outcome is not SKIP
        if rejects_pod or not isinstance(plugin, ScorePlugin):
            return False
        assert isinstance(plugin, TableScorePlugin)
        if isinstance(plugin, PreScorePlugin):
            outcomes = [
                plugin.pre_score(state, self.pod, self.snapshot, self.rows) for state in (self.of_table, self.of_nodes)
            ]
            assert outcomes[0] == outcomes[1], self.called
            if outcomes[0] is not None:
                return False
        scores = plugin.score_rows(self.of_table, self.pod, self.snapshot, self.rows)
        assert scores.dtype == np.int64
        one_by_one = [plugin.score(self.of_nodes, self.pod, self.snapshot.node(row)) for row in self.rows]
        assert scores.tolist() == one_by_one, self.called
        normalized = plugin.normalize_scores(self.of_table, self.pod, scores)
        assert all(0 <= score <= MAX_NODE_SCORE for score in normalized.tolist()), self.called
        return any(one_by_one)
