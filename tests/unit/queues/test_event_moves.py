from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace as changed

from podium.config import ARGS_BY_PLUGIN, NEWEST, args
from podium.framework.contract.cluster_event import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    ActionType,
    ClusterEvent,
    HintScope,
    QueueingHint,
    on,
)
from podium.framework.contract.plugin import Plugin, PreEnqueuePlugin
from podium.framework.contract.status import Status, unresolvable
from podium.lib.clock import ManualClock
from podium.objects.core import Node, Pod
from podium.objects.resource_types import EventResource
from podium.plugins import IN_TREE
from podium.queues import QueueProfile, QueueState, SchedulingQueue, build_hint_map, node_changes, pod_changes
from podium.testing.random_clusters import random_cluster
from tests.builders import node, pod
from tests.builders import pod as built_pod
from tests.unit.plugins.clusters import RecordingHandle
from tests.unit.queues.builders import PROFILE, ByPriority, QueueBench, Recorder, Rejecter

Event = tuple[ClusterEvent, Any, Any]

SCALE_DOWN = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_SCALE_DOWN)


# ---------------------------------------------------------------- how often hints are asked


class Asked:
    """A hint that notes for which pods it is asked."""

    def __init__(self, answer: QueueingHint = QueueingHint.SKIP, raises: bool = False) -> None:
        self.pods: list[str] = []
        self._answer = answer
        self._raises = raises

    def __call__(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        self.pods.append(pod.metadata.name)
        if self._raises:
            raise LookupError("no such node")
        return self._answer


def rejecting(hint: Asked, scope: HintScope, *actions: ActionType, name: str = "Fit") -> Rejecter:
    return Rejecter(name, on(EventResource.NODE, ActionType.ADD, hint=hint, scope=scope), on_pods(hint, scope))


def on_pods(hint: Asked, scope: HintScope) -> Any:
    return on(EventResource.POD, ActionType.DELETE, ActionType.UPDATE_POD_SCALE_DOWN, hint=hint, scope=scope)


def rejected_by_fit(bench: QueueBench, *pods: Pod) -> None:
    for rejected_pod in pods:
        bench.add_rejected(rejected_pod, "Fit")
    bench.advance(5)


@pytest.mark.parametrize(
    ("scope", "names_asked"),
    [(HintScope.SPEC, ["a", "c"]), (HintScope.LABELS, ["a", "b", "c"]), (HintScope.ANYTHING, ["a", "b", "b2", "c"])],
)
def test_a_hint_is_asked_about_one_pod_of_those_that_it_cannot_tell_apart(
    scope: HintScope, names_asked: list[str]
) -> None:
    hint = Asked()
    bench = QueueBench(rejecting(hint, scope))
    rejected_by_fit(bench, pod("a"), pod("b", labels={"x": "y"}), pod("b2", labels={"x": "y"}), pod("c", priority=1))
    bench.queue.move_all(NODE_ADD, None, node("n1"))
    assert hint.pods == names_asked


def test_what_helps_one_pod_helps_all_that_are_alike() -> None:
    bench = QueueBench(rejecting(Asked(QueueingHint.QUEUE), HintScope.SPEC))
    pods = [pod(name) for name in "abc"]
    rejected_by_fit(bench, *pods)
    bench.queue.move_all(NODE_ADD, None, node("n1"))
    assert [bench.state_of(pod) for pod in pods] == [QueueState.ACTIVE] * 3
    assert bench.recorder.hints == [("Fit", "NodeAdd", "Queue")]


def test_a_hint_that_fails_puts_all_that_are_alike_back_and_is_reported_once() -> None:
    bench = QueueBench(rejecting(Asked(raises=True), HintScope.SPEC))
    pods = [pod(name) for name in "abc"]
    rejected_by_fit(bench, *pods)
    bench.queue.move_all(NODE_ADD, None, node("n1"))
    assert [bench.state_of(pod) for pod in pods] == [QueueState.ACTIVE] * 3
    assert len(bench.recorder.failures) == 1


def test_a_pod_that_the_event_is_about_is_asked_about_by_itself() -> None:
    hint = Asked()
    bench = QueueBench(rejecting(hint, HintScope.SPEC))
    pods = [pod(name) for name in "abc"]
    rejected_by_fit(bench, *pods)
    bench.queue.move_all(ASSIGNED_POD_DELETE, pods[1], None)
    bench.queue.move_all(SCALE_DOWN, pods[0], pods[0])
    assert hint.pods == ["b", "a", "a", "b"]


def test_the_only_pod_of_its_kind_may_be_what_the_event_is_about() -> None:
    hint = Asked()
    bench = QueueBench(rejecting(hint, HintScope.SPEC))
    rejected_by_fit(bench, web := pod())
    bench.queue.move_all(ASSIGNED_POD_DELETE, web, None)
    assert hint.pods == ["web-1"]


def test_a_pod_that_becomes_gated_by_an_event_is_asked_about_once() -> None:
    hint = Asked(QueueingHint.QUEUE)

    class Late(PreEnqueuePlugin):
        def __init__(self) -> None:
            self.is_closed = False

        def pre_enqueue(self, pod: Pod) -> Status | None:
            return unresolvable("closed") if self.is_closed else None

        def events_to_register(self) -> Sequence[Any]:
            return (on(EventResource.NODE, ActionType.ADD),)

    bench = QueueBench(rejecting(hint, HintScope.SPEC), late := Late())
    rejected_by_fit(bench, web := pod())
    late.is_closed = True
    bench.queue.move_all(NODE_ADD, None, node("n1"))
    assert bench.state_of(web) is QueueState.GATED
    info = bench.queue.get(web)
    assert info is not None
    assert [line.event for line in info.transitions.entries].count("NodeAdd") == 1


# ---------------------------------------------------------------- the same answers as one by one


def in_tree_plugins() -> list[Plugin]:
    """Every plugin in the tree."""
    plugins = []
    for name, kind in IN_TREE.items():
        args_type = ARGS_BY_PLUGIN.get(name)
        plugins.append(kind(args.RawArgs(None) if args_type is None else args_type(), RecordingHandle()))
    return plugins


def queue_of(plugins: Sequence[Plugin], *, one_by_one: bool) -> SchedulingQueue:
    hints: Mapping[str, Any] = build_hint_map(plugins)
    if one_by_one:
        hints = {
            name: [replace(registration, scope=HintScope.ANYTHING) for registration in registrations]
            for name, registrations in hints.items()
        }
    gates = [plugin for plugin in plugins if isinstance(plugin, PreEnqueuePlugin)]
    return SchedulingQueue(
        [QueueProfile(PROFILE, gates, hints)],
        ByPriority(),
        ManualClock(1000.0),
        lambda key: None,
        wake=lambda: None,
        observer=Recorder(),
    )


def some_pods(random: Random, templates: Sequence[Pod], count: int) -> list[Pod]:
    """Replicas of the templates that differ in what replicas differ in."""
    pods = []
    for index in range(count):
        template = random.choice(templates)
        labels = dict(template.metadata.labels)
        if random.random() < 0.3:
            labels["app"] = random.choice(("web", "db", "cache"))
        namespace = random.choice(("default", "default", "other"))
        metadata = changed(
            template.metadata, name=f"web-{index}", uid=f"uid-web-{index}", labels=labels, namespace=namespace
        )
        pods.append(changed(template, metadata=metadata))
    return pods


def some_event(
    random: Random, nodes: Sequence[Node], placed_pods: Sequence[Pod], waiting: Sequence[Pod]
) -> list[Event]:
    """One change of the cluster, which may be several events."""
    old_node, new_node = random.choice(nodes), random.choice(nodes)
    new_node = changed(new_node, metadata=changed(new_node.metadata, name=old_node.name))
    kind = random.randrange(7)
    if kind == 0:
        return [(NODE_ADD, None, new_node)]
    if kind == 1:
        return [(NODE_DELETE, old_node, None)]
    if kind in (2, 3):
        return [(event, old_node, new_node) for event in node_changes(old_node, new_node)]
    old = random.choice(waiting).on_node("n0") if random.random() < 0.3 else random.choice(placed_pods)
    if kind == 4:
        return [(ASSIGNED_POD_ADD, None, old)]
    if kind == 5:
        return [(ASSIGNED_POD_DELETE, old, None)]
    second_pod = random.choice(placed_pods)
    new = changed(old, spec=second_pod.spec, metadata=changed(old.metadata, labels=second_pod.metadata.labels))
    return [(event, old, new) for event in pod_changes(old, new, NEWEST)]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_asking_about_one_of_each_kind_gives_the_answers_of_asking_about_every_pod(seed: int) -> None:
    random = Random(seed)
    clusters = [random_cluster(random) for _ in range(6)]
    nodes = [node for cluster in clusters for node in cluster.nodes]
    placed_pods = [existing_pod for cluster in clusters for existing_pod in cluster.existing_pods]
    templates = [pod for cluster in clusters for pod in cluster.incoming]
    plugins = in_tree_plugins()
    names = sorted(build_hint_map(plugins))
    queues = [queue_of(plugins, one_by_one=one_by_one) for one_by_one in (False, True)]
    waiting = some_pods(random, random.sample(templates, 3), 60)
    kinds = [random.sample(names, random.choice((1, 1, 2))) for _ in range(4)]
    rejectors = {pod.uid: random.choice(kinds) for pod in waiting}
    move_count = 0
    for queue in queues:
        for item in waiting:
            queue.add(item)
    for _ in range(40):
        reject_all(queues, rejectors)
        for event, old, new in some_event(random, nodes, placed_pods, waiting):
            for queue in queues:
                queue.move_all(event, old, new)
            states = [[queue.state_of(pod) for pod in waiting] for queue in queues]
            assert states[0] == states[1], (event, old, new)
            move_count += sum(state is QueueState.BACKOFF for state in states[0])
    assert move_count > 0
    hint_counts = [len(queue._observer.hints) for queue in queues]  # type: ignore[attr-defined]
    assert hint_counts[0] < hint_counts[1]


def reject_all(queues: Sequence[SchedulingQueue], rejectors: Mapping[str, Sequence[str]]) -> None:
    """Try whatever can be tried; in vain."""
    for queue in queues:
        while (info := queue.pop()) is not None:
            names = rejectors[info.pod.uid]
            info.unschedulable_plugins, info.pending_plugins, info.gating_plugin = set(names), set(), ""
            queue.add_unschedulable_if_not_present(info)


def test_replicas_with_other_labels_differ_by_the_pods_that_reject_them() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}
    shy = built_pod("shy", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    assert moved_by_the_end_of(shy.on_node("n1"), "InterPodAffinity", {}) == ["db"]


def test_replicas_with_other_labels_differ_if_they_spread_by_label() -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
        "matchLabelKeys": ["app"],
    }
    spreads = {"topologySpreadConstraints": [constraint]}
    placed_pod = built_pod("placed", labels={"app": "db"}).on_node("n1")
    assert moved_by_the_end_of(placed_pod, "PodTopologySpread", spreads) == ["db"]


def moved_by_the_end_of(placed_pod: Pod, rejector: str, spec: Mapping[str, Any]) -> list[str]:
    """Return the replicas web and db that are tried again when the pod goes, after the plugin rejected them."""
    queue = queue_of(in_tree_plugins(), one_by_one=False)
    waiting = [built_pod(name, labels={"app": name}, spec=spec) for name in ("web", "db")]
    assert waiting[0].spec is waiting[1].spec
    for item in waiting:
        queue.add(item)
    reject_all([queue], {pod.uid: [rejector] for pod in waiting})
    queue.move_all(ASSIGNED_POD_DELETE, placed_pod, None)
    return [pod.metadata.name for pod in waiting if queue.state_of(pod) is QueueState.BACKOFF]
