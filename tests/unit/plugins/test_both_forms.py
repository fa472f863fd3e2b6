"""The contract between a plugin's two forms: on any cluster they say the same of every node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster import Rows, Snapshot
from podium.config.args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    RequestedToCapacityRatio,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from podium.framework.cycle_state import CycleState
from podium.framework.interface import (
    MAX_NODE_SCORE,
    FilterPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    TableFilterPlugin,
    TableScorePlugin,
)
from podium.framework.status import Status
from podium.kube.objects import Node, Pod
from podium.plugins import IN_TREE
from tests.unit.plugins.clusters import StillHandle, node, pod, snapshot_of

T = TypeVar("T")

GPU = "example.com/gpu"
KEYS, VALUES = ("zone", "disk"), ("1", "2", "30", "ssd", "")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

keys = st.sampled_from(KEYS)
amounts = st.integers(0, 4000)
labels = st.dictionaries(keys, st.sampled_from(VALUES))
effects = st.sampled_from(("NoSchedule", "NoExecute", "PreferNoSchedule"))
taints = st.fixed_dictionaries({"key": keys, "value": st.sampled_from(VALUES), "effect": effects})
tolerations = st.fixed_dictionaries(
    {
        "key": st.sampled_from((*KEYS, "")),
        "operator": st.sampled_from(("", "Equal", "Exists", "Gt")),
        "value": st.sampled_from(VALUES),
        "effect": st.one_of(st.just(""), effects),
    }
)
images = st.sampled_from(("app:1", "app:latest", "db:1"))
host_ports = st.fixed_dictionaries(
    {
        "hostPort": st.sampled_from((0, 80, 443)),
        "protocol": st.sampled_from(("", "TCP", "UDP")),
        "hostIP": st.sampled_from(("", "0.0.0.0", "10.0.0.1", "10.0.0.2")),
    }
)
requests = st.fixed_dictionaries(
    {},
    optional={
        "cpu": amounts.map(lambda milli: f"{milli}m"),
        "memory": amounts,
        "ephemeral-storage": amounts,
        GPU: st.integers(0, 3),
    },
)


def requirements(*operators: str, key: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "key": key,
            "operator": st.sampled_from(operators),
            "values": st.lists(st.sampled_from((*VALUES, "n1", "n2")), max_size=2),
        }
    )


terms = st.fixed_dictionaries(
    {
        "matchExpressions": st.lists(
            requirements("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", key=keys), max_size=2
        ),
        "matchFields": st.lists(
            requirements("In", "NotIn", key=st.sampled_from(("metadata.name", "metadata.uid"))), max_size=1
        ),
    }
)
valid_terms = st.fixed_dictionaries(
    {
        "matchExpressions": st.lists(
            st.fixed_dictionaries({"key": keys, "operator": st.sampled_from(("Exists", "DoesNotExist"))}), max_size=2
        )
    }
)
preferences = st.fixed_dictionaries({"weight": st.integers(0, 100), "preference": valid_terms})
affinities = st.fixed_dictionaries(
    {},
    optional={
        REQUIRED: st.fixed_dictionaries({"nodeSelectorTerms": st.lists(terms, max_size=3)}),
        PREFERRED: st.lists(preferences, max_size=3),
    },
)


other_pods = st.sampled_from(
    (
        None,
        {},
        *({"matchExpressions": [{"key": "app", "operator": operator}]} for operator in ("Exists", "DoesNotExist")),
    )
)
pod_terms = st.fixed_dictionaries({"topologyKey": keys, "labelSelector": other_pods})
pod_preferences = st.fixed_dictionaries({"weight": st.integers(1, 100), "podAffinityTerm": pod_terms})
pod_affinities = st.fixed_dictionaries(
    {}, optional={REQUIRED: st.lists(pod_terms, max_size=1), PREFERRED: st.lists(pod_preferences, max_size=2)}
)
spread_constraints = st.fixed_dictionaries(
    {
        "maxSkew": st.integers(1, 2),
        "topologyKey": keys,
        "whenUnsatisfiable": st.sampled_from(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": other_pods,
        "nodeTaintsPolicy": st.sampled_from((None, "Honor")),
    }
)


@st.composite
def nodes(draw: st.DrawFn, index: int) -> Node:
    return node(
        f"n{index}",
        cpu=f"{draw(amounts)}m",
        memory=str(draw(amounts)),
        pods=draw(st.integers(0, 4)),
        labels=draw(labels),
        taints=draw(st.lists(taints, max_size=2)),
        unschedulable=draw(st.booleans()),
        images=draw(st.lists(st.tuples(images, st.integers(0, 2 << 30)), max_size=2, unique_by=lambda each: each[0])),
        allocatable={GPU: str(draw(st.integers(0, 4))), "ephemeral-storage": str(draw(amounts))},
    )


@st.composite
def pods(draw: st.DrawFn, name: str, on: str = "") -> Pod:
    return pod(
        name,
        on=on,
        requests=draw(requests),
        host_ports=draw(st.lists(host_ports, max_size=2)),
        images=draw(st.lists(images, min_size=1, max_size=2)),
        tolerations=draw(st.lists(tolerations, max_size=2)),
        nodeSelector=draw(labels) if draw(st.booleans()) else {},
        affinity={
            "nodeAffinity": draw(affinities),
            "podAffinity": draw(pod_affinities),
            "podAntiAffinity": draw(pod_affinities),
        },
        topologySpreadConstraints=draw(st.lists(spread_constraints, max_size=2)),
    )


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    size = draw(st.integers(1, 6))
    placed = [draw(pods(f"p{index}", on=f"n{index % size}")) for index in range(draw(st.integers(0, 8)))]
    return snapshot_of(*(draw(nodes(index)) for index in range(size)), *placed)


ALL_RESOURCES = tuple(ResourceSpec(name, weight) for weight, name in enumerate(("cpu", "memory", GPU), start=1))
SHAPE = RequestedToCapacityRatio(
    (UtilizationShapePoint(10, 0), UtilizationShapePoint(60, 9), UtilizationShapePoint(90, 2))
)


def fit(strategy: str, **args: Any) -> NodeResourcesFitArgs:
    return NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(strategy, ALL_RESOURCES, SHAPE), **args)


ADDED = {
    REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]},
    PREFERRED: [{"weight": 7, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}],
}
CONFIGURED: list[tuple[str, Any]] = [
    ("NodeUnschedulable", None),
    ("NodeName", None),
    ("TaintToleration", None),
    ("NodeAffinity", NodeAffinityArgs()),
    ("NodeAffinity", NodeAffinityArgs(ADDED)),
    ("NodePorts", None),
    ("NodeResourcesFit", NodeResourcesFitArgs()),
    ("NodeResourcesFit", fit(LEAST_ALLOCATED, ignored_resource_groups=("example.com",))),
    ("NodeResourcesFit", fit(MOST_ALLOCATED)),
    ("NodeResourcesFit", fit(REQUESTED_TO_CAPACITY_RATIO)),
    ("NodeResourcesBalancedAllocation", NodeResourcesBalancedAllocationArgs()),
    ("NodeResourcesBalancedAllocation", NodeResourcesBalancedAllocationArgs(ALL_RESOURCES)),
    ("ImageLocality", None),
    ("PodTopologySpread", PodTopologySpreadArgs()),
    ("InterPodAffinity", InterPodAffinityArgs()),
    ("DynamicResources", None),
    ("NodeDeclaredFeatures", None),
]


def some_rows(snapshot: Snapshot, kept: int) -> Rows:
    """Not all rows, and not in the usual order."""
    return snapshot.order[::-1][:kept].copy()


def plugins_of(kind: type[T], snapshot: Snapshot) -> Iterator[tuple[T, str]]:
    """Every configured plugin of a kind, and what to call it in a failure."""
    for name, args in CONFIGURED:
        plugin = IN_TREE[name](args, StillHandle(snapshot))
        if isinstance(plugin, kind):
            yield plugin, f"{name} with {args}"


def answers_by_row(
    plugin: TableFilterPlugin, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows
) -> list[Status | None]:
    verdicts = plugin.filter_rows(state, pod, snapshot, rows)
    if verdicts is None:
        return [None] * len(rows)
    assert verdicts.dtype == np.int64
    return [plugin.explain(state, pod, int(verdict)) if verdict else None for verdict in verdicts]


@settings(max_examples=60, deadline=None)
@given(snapshot=clusters(), incoming=st.one_of(pods("new"), pods("new", on="n1")), kept=st.integers(1, 6))
def test_both_forms_filter_alike(snapshot: Snapshot, incoming: Pod, kept: int) -> None:
    rows = some_rows(snapshot, kept)
    for plugin, called in plugins_of(FilterPlugin, snapshot):
        assert isinstance(plugin, TableFilterPlugin)
        state = CycleState()
        if isinstance(plugin, PreFilterPlugin) and plugin.pre_filter(state, incoming, snapshot)[1] is not None:
            continue
        one_by_one = [plugin.filter(state, incoming, snapshot.node(row)) for row in rows]
        assert answers_by_row(plugin, state, incoming, snapshot, rows) == one_by_one, called


@settings(max_examples=60, deadline=None)
@given(snapshot=clusters(), incoming=pods("new"), kept=st.integers(1, 6))
def test_both_forms_score_alike(snapshot: Snapshot, incoming: Pod, kept: int) -> None:
    rows = some_rows(snapshot, kept)
    for plugin, called in plugins_of(ScorePlugin, snapshot):
        assert isinstance(plugin, TableScorePlugin)
        state = CycleState()
        if isinstance(plugin, PreScorePlugin) and plugin.pre_score(state, incoming, snapshot, rows) is not None:
            continue
        scores = plugin.score_rows(state, incoming, snapshot, rows)
        assert scores.dtype == np.int64
        assert scores.tolist() == [plugin.score(state, incoming, snapshot.node(row)) for row in rows], called
        normalized = plugin.normalize_scores(state, incoming, scores)
        assert all(0 <= score <= MAX_NODE_SCORE for score in normalized.tolist()), called
