"""Spreading and pod affinity against models that look at every pod, on random clusters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster import Snapshot
from podium.cluster.pod_usage import pod_usage
from podium.config.args import InterPodAffinityArgs, PodTopologySpreadArgs
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.status import SKIP
from podium.objects import resource_types
from podium.objects.core import Node, Pod
from podium.objects.workloads import Namespace
from podium.plugins.inter_pod_affinity.plugin import InterPodAffinity
from podium.plugins.pod_topology_spread.plugin import PodTopologySpread
from tests.builders import node, pod, snapshot_of
from tests.unit.cluster.changing_clusters import affinities
from tests.unit.cluster.changing_clusters import selectors as any_selectors
from tests.unit.plugins.clusters import RecordingHandle
from tests.unit.plugins.naive_spreading import (
    PodsByNode,
    Rejections,
    affinity_rejections,
    affinity_scores,
    constraints_of,
    pods_by_node,
    spread_rejections,
    spread_scores,
)

ZONE, HOST = "zone", "kubernetes.io/hostname"
labels = st.fixed_dictionaries({"app": st.sampled_from("aab")}, optional={"tier": st.sampled_from("ab")})
namespaces = st.sampled_from(("default", "default", "other"))
selectors = st.one_of(st.just({"matchLabels": {"app": "a"}}), any_selectors)
node_labels = st.fixed_dictionaries(
    {},
    optional={
        ZONE: st.sampled_from(("x", "x", "y", "")),
        "host": st.sampled_from(("1", "2", "3")),
        HOST: st.sampled_from(("1", "2", "3", "4")),
    },
)
policies = st.sampled_from((None, "Honor", "Ignore"))
constraints = st.fixed_dictionaries(
    {
        "maxSkew": st.integers(1, 2),
        "topologyKey": st.sampled_from((ZONE, ZONE, HOST, "host")),
        "whenUnsatisfiable": st.sampled_from(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": selectors,
        "minDomains": st.sampled_from((None, 1, 2, 3)),
        "nodeAffinityPolicy": policies,
        "nodeTaintsPolicy": policies,
        "matchLabelKeys": st.lists(st.sampled_from(("app", "tier")), max_size=2, unique=True),
    }
)
TAINT = {"key": "gpu", "effect": "NoSchedule"}


@st.composite
def nodes(draw: st.DrawFn, index: int) -> Node:
    return node(f"n{index}", labels=draw(node_labels), taints=draw(st.lists(st.just(TAINT), max_size=1)))


@st.composite
def pods(draw: st.DrawFn, name: str, on: str = "", *, terminates: bool = True) -> Pod:
    affinity: dict[str, Any] = draw(affinities) or {}
    if draw(st.sampled_from((False, False, True))):
        expression = {"key": ZONE, "operator": "In", "values": ["x"]}
        selector = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        affinity = {**affinity, "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
    return pod(
        name,
        node=on,
        namespace=draw(namespaces),
        labels=draw(labels),
        terminating=terminates and draw(st.sampled_from((False, False, True))),
        affinity=affinity,
        tolerations=draw(st.lists(st.just({"key": "gpu", "operator": "Exists"}), max_size=1)),
        spec={"topologySpreadConstraints": draw(st.lists(constraints, max_size=2))},
    )


@st.composite
def clusters(draw: st.DrawFn, *, terminating: bool = True) -> Snapshot:
    size = draw(st.integers(1, 5))
    on_nodes = st.integers(0, size - 1)
    pods_on_nodes = [
        draw(pods(f"p{index}", on=f"n{draw(on_nodes)}", terminates=terminating))
        for index in range(draw(st.integers(0, 9)))
    ]
    return snapshot_of(*(draw(nodes(index)) for index in range(size)), *pods_on_nodes)


namespace_labels = st.fixed_dictionaries({"default": labels}, optional={"other": labels})


def spreading(snapshot: Snapshot) -> PodTopologySpread:
    return PodTopologySpread(PodTopologySpreadArgs(), RecordingHandle(snapshot))


def affinity_in(snapshot: Snapshot, namespaces: dict[str, dict[str, str]], weight: int = 1) -> InterPodAffinity:
    namespace_objects = [
        msgspec.convert({"metadata": {"name": name, "labels": labels}}, Namespace)
        for name, labels in namespaces.items()
    ]
    handle = RecordingHandle(snapshot, objects={resource_types.NAMESPACES: namespace_objects})
    return InterPodAffinity(InterPodAffinityArgs(hard_pod_affinity_weight=weight), handle)


Plugin = PodTopologySpread | InterPodAffinity
Model = Callable[[Pod, PodsByNode], Rejections]


def rejections(plugin: Plugin, state: CycleState, pod: Pod, snapshot: Snapshot) -> dict[str, tuple[str, str]]:
    """Return the rejections of both forms, which must be equal."""
    rows = snapshot.order
    verdicts = plugin.filter_rows(state, pod, snapshot, rows)
    by_table = (
        [None] * len(rows) if verdicts is None else [plugin.explain(state, pod, v) if v else None for v in verdicts]
    )
    assert by_table == [plugin.filter(state, pod, snapshot.node(row)) for row in rows]
    return {
        snapshot.name(row): (status.code.label, status.message)
        for row, status in zip(rows, by_table, strict=True)
        if status is not None
    }


def filter_statuses(plugin: Plugin, pod: Pod, snapshot: Snapshot) -> dict[str, tuple[str, str]]:
    state = CycleState()
    _, status = plugin.pre_filter(state, pod, snapshot)
    return {} if status is SKIP else rejections(plugin, state, pod, snapshot)


def normalize(plugin: Plugin, pod: Pod, snapshot: Snapshot, row_count: int) -> dict[str, int] | None:
    state, rows = CycleState(), snapshot.order[::-1][:row_count].copy()
    if plugin.pre_score(state, pod, snapshot, rows) is SKIP:
        return None
    scores = plugin.score_rows(state, pod, snapshot, rows)
    assert scores.tolist() == [plugin.score(state, pod, snapshot.node(row)) for row in rows]
    scaled = plugin.normalize_scores(state, pod, scores)
    return {snapshot.name(row): score for row, score in zip(rows, scaled.tolist(), strict=True)}


@settings(max_examples=60, deadline=None)
@given(snapshot=clusters(), incoming=pods("new"))
def test_spreading_rejects_what_the_model_rejects(snapshot: Snapshot, incoming: Pod) -> None:
    assert filter_statuses(spreading(snapshot), incoming, snapshot) == spread_rejections(
        incoming, pods_by_node(snapshot)
    )


@settings(max_examples=60, deadline=None)
@given(snapshot=clusters(), incoming=pods("new"), row_count=st.integers(1, 5))
def test_spreading_scores_as_the_model_does(snapshot: Snapshot, incoming: Pod, row_count: int) -> None:
    scores = normalize(spreading(snapshot), incoming, snapshot, row_count)
    soft = constraints_of(incoming, "ScheduleAnyway")
    if not soft:
        assert scores is None
        return
    feasible = [snapshot.name(row) for row in snapshot.order[::-1][:row_count]]
    assert scores == spread_scores(soft, pods_by_node(snapshot), feasible, requires_all=True)


@settings(max_examples=60, deadline=None)
@given(snapshot=clusters(), incoming=pods("new"), namespaces=namespace_labels)
def test_affinity_rejects_what_the_model_rejects(snapshot: Snapshot, incoming: Pod, namespaces: Any) -> None:
    plugin = affinity_in(snapshot, namespaces)
    assert filter_statuses(plugin, incoming, snapshot) == affinity_rejections(
        incoming, pods_by_node(snapshot), namespaces
    )


@settings(max_examples=60, deadline=None)
@given(
    snapshot=clusters(),
    incoming=pods("new"),
    namespaces=namespace_labels,
    row_count=st.integers(1, 5),
    weight=st.sampled_from((0, 1, 50)),
)
def test_affinity_scores_as_the_model_does(
    snapshot: Snapshot, incoming: Pod, namespaces: Any, row_count: int, weight: int
) -> None:
    scores = normalize(affinity_in(snapshot, namespaces, weight), incoming, snapshot, row_count)
    feasible = [snapshot.name(row) for row in snapshot.order[::-1][:row_count]]
    assert scores == affinity_scores(incoming, pods_by_node(snapshot), feasible, namespaces, weight)


@settings(max_examples=60, deadline=None)
@given(
    snapshot=clusters(terminating=False),
    incoming=pods("new"),
    extra=pods("extra", terminates=False),
    namespaces=namespace_labels,
    on=st.integers(0, 4),
)
def test_state_follows_the_pods_of_one_node_that_are_tried_out(
    snapshot: Snapshot, incoming: Pod, extra: Pod, namespaces: Any, on: int
) -> None:
    row = int(snapshot.order[on % len(snapshot)])
    if not counts_everything(incoming):
        try_out(spreading(snapshot), spread_rejections, snapshot, incoming, extra, row)
    affine = partial(affinity_rejections, namespaces=namespaces)
    try_out(affinity_in(snapshot, namespaces), affine, snapshot, incoming, extra, row)


def try_out(plugin: Plugin, model: Model, snapshot: Snapshot, incoming: Pod, extra: Pod, row: int) -> None:
    """Take all pods off the node and put another on it; the state must be as if counted anew at each step."""
    state = CycleState()
    _, status = plugin.pre_filter(state, incoming, snapshot)
    if status is SKIP:
        return
    rejections_before = rejections(plugin, state, incoming, snapshot)
    extensions, trial, fork = plugin.pre_filter_extensions(), state.clone(), snapshot.fork()
    for victim in list(fork.pods[row].values()):
        fork.remove_pod(row, victim.uid)
        extensions.remove_pod(trial, incoming, victim, fork.node(row))
        assert rejections(plugin, trial, incoming, fork) == model(incoming, pods_by_node(fork))
    fork.add_pod(row, extra, pod_usage(extra))
    extensions.add_pod(trial, incoming, extra, fork.node(row))
    assert rejections(plugin, trial, incoming, fork) == model(incoming, pods_by_node(fork))
    assert rejections(plugin, state, incoming, snapshot) == rejections_before


def counts_everything(pod: Pod) -> bool:
    """Return True if a constraint selects everything: upstream then counts only pods that are tried out later."""
    return any(
        constraint.label_selector is not None
        and not (constraint.label_selector.match_labels or constraint.label_selector.match_expressions)
        for constraint in pod.spec.topology_spread_constraints
    )
