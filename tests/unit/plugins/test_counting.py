"""Where counting what pods take up is enough, the answers are those of trying the pods out one by one."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium.cluster import Snapshot
from podium.config import load
from podium.framework.contract.plugin import Scope
from podium.framework.contract.steps import run_unasked
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.node_dry_runs import AfterFiltering
from podium.framework.cycle.nominated_pods import NominatedPods
from podium.framework.cycle.search import filter_all
from podium.framework.preemption.candidates import Budgets, Importance
from podium.framework.preemption.dry_run import dry_run_preemption
from podium.framework.preemption.lowest_priorities import LowestPriorities
from podium.framework.preemption.victim_cache import VictimCache
from podium.framework.profile.runtime import Framework
from podium.objects.core import Pod
from podium.objects.workloads import PodDisruptionBudget
from podium.plugins import IN_TREE
from tests import builders
from tests.unit.framework.profiles import Nominated, Recorder
from tests.unit.plugins.random_clusters import (
    GPU,
    NODES,
    RandomCluster,
    clusters,
    host_ports,
    incoming,
    new_pods,
    node_labels,
    pod_labels,
    sized,
    some,
    taints,
)

PRIORITY = 10
PODS = 12
NOW_S = 1_767_225_600.0
STARTS = (None, "2025-01-01T00:00:00Z", "2025-06-01T00:00:00Z", "2027-01-01T00:00:00Z", "yesterday")
DEFAULTS = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
PROFILE = load(DEFAULTS, "test").config.profiles[0]

requests = st.fixed_dictionaries(
    {"cpu": st.sampled_from(("500m", "1", "2"))}, optional={"memory": st.sampled_from((100, 400)), GPU: st.just(1)}
)
plain_pods = st.fixed_dictionaries({"requests": requests})
small_nodes = st.fixed_dictionaries(
    {"cpu": st.just("2"), "memory": st.just("800"), "labels": node_labels},
    optional={"pods": st.integers(1, 3), "allocatable": st.just({GPU: 1}), "taints": some(taints, 1)},
)
crowd = st.fixed_dictionaries(
    {"node": st.integers(0, NODES - 1), "requests": requests},
    optional={"labels": pod_labels, "host_ports": some(host_ports, 1)},
)


def crowded(least: int, most: int) -> st.SearchStrategy[Any]:
    """Small clusters whose nodes have that many pods in all."""
    return st.builds(
        lambda cluster, nodes, running: dataclasses.replace(cluster, nodes=nodes, running=running),
        clusters,
        sized(small_nodes, 1, NODES),
        sized(crowd, least, most),
    )


pods = st.one_of(plain_pods, new_pods)
nominations = st.lists(st.tuples(st.integers(0, NODES - 1), pods), max_size=4)
lives = sized(st.tuples(st.sampled_from((0, 1, 1, PRIORITY)), st.sampled_from(STARTS)), PODS, PODS)
budgets = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 1)), max_size=2)


def framework(cluster: RandomCluster, snapshot: Snapshot, *, counts: bool) -> Framework:
    """The default profile; where it does not count, every filter claims that it has to see the pods."""
    made = Framework(PROFILE, IN_TREE, cluster.handle(snapshot), Recorder())
    for each in made.filters if not counts else ():
        vars(each.plugin)["filter_scope"] = lambda spec: Scope.CLUSTER
    return made


def with_lives(snapshot: Snapshot, drawn: list[tuple[int, str | None]]) -> None:
    """Gives the running pods priorities and start times."""
    number = iter(drawn)
    for row in snapshot.order.tolist():
        for uid, each in snapshot.pods[row].items():
            priority, started = next(number)
            each.spec.__dict__.clear()
            spec = msgspec.structs.replace(each.spec, priority=priority)
            status = msgspec.structs.replace(each.status, start_time=started)
            newer = msgspec.structs.replace(each, spec=spec, status=status)
            snapshot.replace_pod(row, newer, snapshot.pod_usages(row)[uid])


def promised(drawn: list[tuple[int, Any]]) -> Nominated:
    by_node: dict[str, list[Pod]] = {}
    for index, (node, keywords) in enumerate(drawn):
        pod = builders.pod(f"promised-{index}", **{**keywords, "node": ""})
        by_node.setdefault(f"n{node}", []).append(pod)
    return Nominated(by_node)


class FilteredCluster:
    """One cluster, judged by one framework."""

    def __init__(self, framework: Framework, snapshot: Snapshot, pod: Pod, nominated: NominatedPods) -> None:
        self.snapshot, self.pod = snapshot, pod
        cycle = Cycle(framework, pod, snapshot, nominated)
        self.state, self.diagnosis = cycle.state, cycle.diagnosis
        self.judged, self.filtered = filter_all(cycle), AfterFiltering(cycle)

    def verdicts(self) -> tuple[list[int], dict[int, Any], set[str]]:
        return self.judged.rows.tolist(), dict(self.diagnosis.statuses()), self.diagnosis.unschedulable_plugins

    def victims(self, protected: Budgets, wanted: int, known: VictimCache | None = None) -> tuple[Any, Any]:
        rows, importance = self.snapshot.order, Importance(NOW_S)
        have_lower = LowestPriorities().of(self.snapshot)[rows] < self.pod.priority
        known = known or VictimCache()
        tried = run_unasked(
            dry_run_preemption(self.filtered, rows[have_lower], wanted, self.pod, protected, importance, known)
        )
        return tried.candidates, {row: (each.code, each.message) for row, each in tried.rejections.items()}


def both(cluster: RandomCluster, snapshot: Snapshot, keywords: Any, nominated: Nominated) -> Iterator[FilteredCluster]:
    pod = incoming({**keywords, "priority": PRIORITY})
    for counts in (True, False):
        yield FilteredCluster(framework(cluster, snapshot, counts=counts), snapshot, pod, nominated)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cluster=crowded(0, 4), pod=pods, drawn=nominations)
def test_nominated_pods_take_the_same_room_counted_as_tried_out(cluster: Any, pod: Any, drawn: Any) -> None:
    counted, tried = both(cluster, cluster.snapshot(), pod, promised(drawn))
    assert counted.verdicts() == tried.verdicts()


def test_victims_are_the_same_counted_as_tried_out() -> None:
    counted_at_all = 0

    @settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(
        cluster=crowded(4, PODS), pod=pods, drawn=nominations, life=lives, limits=budgets, wanted=st.integers(1, NODES)
    )
    def hold(cluster: Any, pod: Any, drawn: Any, life: Any, limits: Any, wanted: int) -> None:
        nonlocal counted_at_all
        snapshot = cluster.snapshot()
        with_lives(snapshot, life)
        protected = Budgets(budget(f"b{index}", *each) for index, each in enumerate(limits))
        counted, tried = both(cluster, snapshot, pod, promised(drawn))
        if counted.judged.rejection is None:
            found = counted.victims(protected, wanted)
            assert found == tried.victims(protected, wanted)
            counted_at_all += counted.filtered.dry_run_of_nodes() is not None and bool(found[0])

    hold()
    assert counted_at_all > 10


changes = st.lists(st.tuples(st.integers(0, PODS - 1), st.booleans(), nominations, budgets), min_size=2, max_size=4)
few_plain_pods = sized(plain_pods, 1, 2)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cluster=crowded(4, PODS), pods=few_plain_pods, life=lives, drawn=changes)
def test_what_is_known_of_victims_is_what_would_be_found_anew(cluster: Any, pods: Any, life: Any, drawn: Any) -> None:
    """Pods of two kinds preempt in turn, while pods go and change, nodes are promised, and budgets are used up."""
    snapshot = cluster.snapshot()
    with_lives(snapshot, life)
    known = VictimCache()
    made = framework(cluster, snapshot, counts=True)
    for (number, goes, promises, limits), keywords in itertools.product(drawn, pods):
        everybody = [(row, each) for row in snapshot.order.tolist() for each in snapshot.pods[row].values()]
        if everybody:
            row, each = everybody[number % len(everybody)]
            pod_usage = snapshot.pod_usages(row)[each.uid]
            snapshot.remove_pod(row, each.uid)
            if not goes:
                status = msgspec.structs.replace(each.status, start_time=STARTS[1])
                snapshot.add_pod(row, msgspec.structs.replace(each, status=status), pod_usage)
        filtered = FilteredCluster(made, snapshot, incoming({**keywords, "priority": PRIORITY}), promised(promises))
        if filtered.judged.rejection is None:
            protected = Budgets(budget(f"b{index}", *each) for index, each in enumerate(limits))
            for _ in range(2):
                assert filtered.victims(protected, NODES, known) == filtered.victims(protected, NODES)


def budget(name: str, app: str, allowed: int) -> PodDisruptionBudget:
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": allowed},
        },
        PodDisruptionBudget,
    )
