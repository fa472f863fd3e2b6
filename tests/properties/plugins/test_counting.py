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
    lists_of_size,
    new_pods,
    node_labels,
    pod_labels,
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


def crowds(least: int, count_max: int) -> st.SearchStrategy[Any]:
    """Small clusters whose nodes have that many pods in all."""
    return st.builds(
        lambda cluster, nodes, running: dataclasses.replace(cluster, nodes=nodes, running=running),
        clusters,
        lists_of_size(small_nodes, 1, NODES),
        lists_of_size(crowd, least, count_max),
    )


pods = st.one_of(plain_pods, new_pods)
nominations = st.lists(st.tuples(st.integers(0, NODES - 1), pods), max_size=4)
lives = lists_of_size(st.tuples(st.sampled_from((0, 1, 1, PRIORITY)), st.sampled_from(STARTS)), PODS, PODS)
budgets = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 1)), max_size=2)


def framework(cluster: RandomCluster, snapshot: Snapshot, *, counts: bool) -> Framework:
    """The default profile; where it does not count, every filter claims that it has to see the pods."""
    runtime = Framework(PROFILE, IN_TREE, cluster.handle(snapshot), Recorder())
    for filter_entry in runtime.filters if not counts else ():
        vars(filter_entry.plugin)["filter_scope"] = lambda spec: Scope.CLUSTER
    return runtime


def with_lives(snapshot: Snapshot, lives: list[tuple[int, str | None]]) -> None:
    """Gives the running pods priorities and start times."""
    number = iter(lives)
    for row in snapshot.order.tolist():
        for pod in snapshot.pods[row].values():
            priority, start_time = next(number)
            pod.spec.__dict__.clear()
            spec = msgspec.structs.replace(pod.spec, priority=priority)
            status = msgspec.structs.replace(pod.status, start_time=start_time)
            newer = msgspec.structs.replace(pod, spec=spec, status=status)
            snapshot.replace_pod(row, newer, snapshot.pod_usage(row, pod))


def nominations_of(promises: list[tuple[int, Any]]) -> Nominated:
    by_node: dict[str, list[Pod]] = {}
    for index, (node, keywords) in enumerate(promises):
        pod = builders.pod(f"promised-{index}", **{**keywords, "node": ""})
        by_node.setdefault(f"n{node}", []).append(pod)
    return Nominated(by_node)


class FilteredCluster:
    """One cluster, judged by one framework."""

    def __init__(self, framework: Framework, snapshot: Snapshot, pod: Pod, nominations: NominatedPods) -> None:
        self.snapshot, self.pod = snapshot, pod
        cycle = Cycle(framework, pod, snapshot, nominations)
        self.state, self.diagnosis = cycle.state, cycle.diagnosis
        self.judged, self.filtered = filter_all(cycle), AfterFiltering(cycle)

    def verdicts(self) -> tuple[list[int], dict[int, Any], set[str]]:
        return self.judged.rows.tolist(), dict(self.diagnosis.statuses()), self.diagnosis.unschedulable_plugins

    def victims(
        self, protected: Budgets, candidates_max: int, victim_cache: VictimCache | None = None
    ) -> tuple[Any, Any]:
        rows, importance = self.snapshot.order, Importance(NOW_S)
        have_lower = LowestPriorities().of(self.snapshot)[rows] < self.pod.priority
        victim_cache = victim_cache or VictimCache()
        selection = run_unasked(
            dry_run_preemption(
                self.filtered, rows[have_lower], candidates_max, self.pod, protected, importance, victim_cache
            )
        )
        return [*selection.candidates], {
            row: (status.code, status.message) for row, status in selection.rejections.items()
        }


def both(
    cluster: RandomCluster, snapshot: Snapshot, keywords: Any, nominations: Nominated
) -> Iterator[FilteredCluster]:
    pod = incoming({**keywords, "priority": PRIORITY})
    for counts in (True, False):
        yield FilteredCluster(framework(cluster, snapshot, counts=counts), snapshot, pod, nominations)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cluster=crowds(0, 4), pod=pods, promises=nominations)
def test_nominated_pods_take_the_same_room_counted_as_tried_out(cluster: Any, pod: Any, promises: Any) -> None:
    counted_cluster, tried_cluster = both(cluster, cluster.snapshot(), pod, nominations_of(promises))
    assert counted_cluster.verdicts() == tried_cluster.verdicts()


def test_victims_are_the_same_counted_as_tried_out() -> None:
    counted_at_all = 0

    @settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(
        cluster=crowds(4, PODS),
        pod=pods,
        promises=nominations,
        life=lives,
        limits=budgets,
        candidates_max=st.integers(1, NODES),
    )
    def hold(cluster: Any, pod: Any, promises: Any, life: Any, limits: Any, candidates_max: int) -> None:
        nonlocal counted_at_all
        snapshot = cluster.snapshot()
        with_lives(snapshot, life)
        protected = Budgets(budget(f"b{index}", *limit) for index, limit in enumerate(limits))
        counted_cluster, tried_cluster = both(cluster, snapshot, pod, nominations_of(promises))
        if counted_cluster.judged.rejection is None:
            selection = counted_cluster.victims(protected, candidates_max)
            assert selection == tried_cluster.victims(protected, candidates_max)
            counted_at_all += counted_cluster.filtered.dry_run_of_nodes() is not None and bool(selection[0])

    hold()
    assert counted_at_all > 10


changes = st.lists(st.tuples(st.integers(0, PODS - 1), st.booleans(), nominations, budgets), min_size=2, max_size=4)
few_plain_pods = lists_of_size(plain_pods, 1, 2)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cluster=crowds(4, PODS), pods=few_plain_pods, life=lives, steps=changes)
def test_what_is_known_of_victims_is_what_would_be_found_anew(cluster: Any, pods: Any, life: Any, steps: Any) -> None:
    """Pods of two kinds preempt in turn, while pods go and change, nodes are promised, and budgets are used up."""
    snapshot = cluster.snapshot()
    with_lives(snapshot, life)
    victim_cache = VictimCache()
    runtime = framework(cluster, snapshot, counts=True)
    for (number, goes, promises, limits), keywords in itertools.product(steps, pods):
        everybody = [(row, pod) for row in snapshot.order.tolist() for pod in snapshot.pods[row].values()]
        if everybody:
            row, pod = everybody[number % len(everybody)]
            pod_usage = snapshot.pod_usage(row, pod)
            snapshot.remove_pod(row, pod.uid)
            if not goes:
                status = msgspec.structs.replace(pod.status, start_time=STARTS[1])
                snapshot.add_pod(row, msgspec.structs.replace(pod, status=status), pod_usage)
        filtered_cluster = FilteredCluster(
            runtime, snapshot, incoming({**keywords, "priority": PRIORITY}), nominations_of(promises)
        )
        if filtered_cluster.judged.rejection is None:
            protected = Budgets(budget(f"b{index}", *limit) for index, limit in enumerate(limits))
            for _ in range(2):
                assert filtered_cluster.victims(protected, NODES, victim_cache) == filtered_cluster.victims(
                    protected, NODES
                )


def budget(name: str, app: str, disruptions: int) -> PodDisruptionBudget:
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": disruptions},
        },
        PodDisruptionBudget,
    )
