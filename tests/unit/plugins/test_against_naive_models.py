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
    placed = [
        draw(pods(f"p{index}", on=f"n{draw(on_nodes)}", terminates=terminating))
        for index in range(draw(st.integers(0, 9)))
    ]
    return snapshot_of(*(draw(nodes(index)) for index in range(size)), *placed)


namespace_labels = st.fixed_dictionaries({"default": labels}, optional={"other": labels})


def spreading(snapshot: Snapshot) -> PodTopologySpread:
    return PodTopologySpread(PodTopologySpreadArgs(), RecordingHandle(snapshot))


def affinity_in(snapshot: Snapshot, known: dict[str, dict[str, str]], weight: int = 1) -> InterPodAffinity:
    there = [msgspec.convert({"metadata": {"name": name, "labels": each}}, Namespace) for name, each in known.items()]
    handle = RecordingHandle(snapshot, objects={resource_types.NAMESPACES: there})
    return InterPodAffinity(InterPodAffinityArgs(hard_pod_affinity_weight=weight), handle)


Plugin = PodTopologySpread | InterPodAffinity
Model = Callable[[Pod, PodsByNode], Rejections]


def rejections(plugin: Plugin, state: CycleState, pod: Pod, snapshot: Snapshot) -> dict[str, tuple[str, str]]:
    """What both forms say, which must be the same."""
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


def filtered(plugin: Plugin, pod: Pod, snapshot: Snapshot) -> dict[str, tuple[str, str]]:
    state = CycleState()
    _, status = plugin.pre_filter(state, pod, snapshot)
    return {} if status is SKIP else rejections(plugin, state, pod, snapshot)


def normalized(plugin: Plugin, pod: Pod, snapshot: Snapshot, kept: int) -> dict[str, int] | None:
    state, rows = CycleState(), snapshot.order[::-1][:kept].copy()
    if plugin.pre_score(state, pod, snapshot, rows) is SKIP:
        return None
    scores = plugin.score_rows(state, pod, snapshot, rows)
    assert scores.tolist() == [plugin.score(state, pod, snapshot.node(row)) for row in rows]
    scaled = plugin.normalize_scores(state, pod, scores)
    return {snapshot.name(row): score for row, score in zip(rows, scaled.tolist(), strict=True)}


@settings(max_examples=60, deadline=None)
@given(snapshot=clusters(), incoming=pods("new"))
def test_spreading_rejects_what_the_model_rejects(snapshot: Snapshot, incoming: Pod) -> None:
    assert filtered(spreading(snapshot), incoming, snapshot) == spread_rejections(incoming, pods_by_node(snapshot))


@settings(max_examples=60, deadline=None)
@given(snapshot=clusters(), incoming=pods("new"), kept=st.integers(1, 5))
def test_spreading_scores_as_the_model_does(snapshot: Snapshot, incoming: Pod, kept: int) -> None:
    scores = normalized(spreading(snapshot), incoming, snapshot, kept)
    soft = constraints_of(incoming, "ScheduleAnyway")
    if not soft:
        assert scores is None
        return
    feasible = [snapshot.name(row) for row in snapshot.order[::-1][:kept]]
    assert scores == spread_scores(soft, pods_by_node(snapshot), feasible, requires_all=True)


@settings(max_examples=60, deadline=None)
@given(snapshot=clusters(), incoming=pods("new"), known=namespace_labels)
def test_affinity_rejects_what_the_model_rejects(snapshot: Snapshot, incoming: Pod, known: Any) -> None:
    plugin = affinity_in(snapshot, known)
    assert filtered(plugin, incoming, snapshot) == affinity_rejections(incoming, pods_by_node(snapshot), known)


@settings(max_examples=60, deadline=None)
@given(
    snapshot=clusters(),
    incoming=pods("new"),
    known=namespace_labels,
    kept=st.integers(1, 5),
    weight=st.sampled_from((0, 1, 50)),
)
def test_affinity_scores_as_the_model_does(
    snapshot: Snapshot, incoming: Pod, known: Any, kept: int, weight: int
) -> None:
    scores = normalized(affinity_in(snapshot, known, weight), incoming, snapshot, kept)
    feasible = [snapshot.name(row) for row in snapshot.order[::-1][:kept]]
    assert scores == affinity_scores(incoming, pods_by_node(snapshot), feasible, known, weight)


@settings(max_examples=60, deadline=None)
@given(
    snapshot=clusters(terminating=False),
    incoming=pods("new"),
    extra=pods("extra", terminates=False),
    known=namespace_labels,
    on=st.integers(0, 4),
)
def test_state_follows_the_pods_of_one_node_that_are_tried_out(
    snapshot: Snapshot, incoming: Pod, extra: Pod, known: Any, on: int
) -> None:
    row = int(snapshot.order[on % len(snapshot)])
    if not counts_everything(incoming):
        try_out(spreading(snapshot), spread_rejections, snapshot, incoming, extra, row)
    affine = partial(affinity_rejections, namespaces=known)
    try_out(affinity_in(snapshot, known), affine, snapshot, incoming, extra, row)


def try_out(plugin: Plugin, model: Model, snapshot: Snapshot, incoming: Pod, extra: Pod, row: int) -> None:
    """Take all pods off the node and put another on it; the state must be as if counted anew at each step."""
    state = CycleState()
    _, status = plugin.pre_filter(state, incoming, snapshot)
    if status is SKIP:
        return
    before = rejections(plugin, state, incoming, snapshot)
    extensions, trial, fork = plugin.pre_filter_extensions(), state.clone(), snapshot.fork()
    for victim in list(fork.pods[row].values()):
        fork.remove_pod(row, victim.uid)
        extensions.remove_pod(trial, incoming, victim, fork.node(row))
        assert rejections(plugin, trial, incoming, fork) == model(incoming, pods_by_node(fork))
    fork.add_pod(row, extra, pod_usage(extra))
    extensions.add_pod(trial, incoming, extra, fork.node(row))
    assert rejections(plugin, trial, incoming, fork) == model(incoming, pods_by_node(fork))
    assert rejections(plugin, state, incoming, snapshot) == before


def counts_everything(pod: Pod) -> bool:
    """Whether a constraint selects everything: upstream counts no pod for it at first, but those tried out later."""
    return any(
        each.label_selector is not None
        and not (each.label_selector.match_labels or each.label_selector.match_expressions)
        for each in pod.spec.topology_spread_constraints
    )
