"""The same attempts by a profile that keeps answers and by one that does not, over random changes of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hypothesis import strategies as st

from podium.cluster import Snapshot, pod_usage
from podium.config import load
from podium.engine.simulated_cache import fork_with_point
from podium.framework.contract.status import ScheduleError
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.diagnosis import Diagnosis
from podium.framework.cycle.evaluation import evaluate_all
from podium.framework.cycle.schedule import Decision, DoesNotFit, Failed, Suggested, schedule
from podium.framework.cycle.search import Rotation
from podium.framework.profile.runtime import Framework
from podium.framework.profile.signature_cache import SignatureCache
from podium.objects.core import Pod
from podium.plugins import IN_TREE
from podium.queues import Nominator
from tests import builders
from tests.unit.framework.profiles import Recorder
from tests.unit.plugins import random_clusters
from tests.unit.plugins.random_clusters import NODES, RandomCluster

DEFAULT = load("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration", "test").config.profiles[
    0
]

GROUP_SIZE = 4

kinds = st.lists(random_clusters.pods({}, {}), min_size=1, max_size=2)
indexes = st.integers(0, NODES)
group_steps = st.tuples(st.just("try a group"), st.integers(0, 3), st.sets(st.integers(0, GROUP_SIZE - 1)))
steps = st.one_of(
    st.tuples(st.just("attempt"), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("attempt"), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("remove pod"), st.integers(0, 20), st.none()),
    st.tuples(st.just("put node"), indexes, random_clusters.nodes),
    st.tuples(st.just("drop node"), indexes, st.none()),
    st.tuples(st.just("look at a fork"), st.integers(0, 3), st.none()),
    st.tuples(st.just("nominate"), st.integers(0, 3), indexes),
    group_steps,
)
histories = st.lists(steps, min_size=4, max_size=14)
histories_of_groups = st.lists(st.one_of(group_steps, group_steps, steps), min_size=4, max_size=14)


@dataclass
class Side:
    """One profile with its own rotation."""

    framework: Framework
    evaluations: Recorder
    rotation: Rotation = field(default_factory=Rotation)

    @classmethod
    def of(cls, cluster: RandomCluster, snapshot: Snapshot, *, is_warm: bool) -> Side:
        recorder = Recorder()
        signatures = SignatureCache if is_warm else partial(SignatureCache, rows_max=0)
        framework = Framework(DEFAULT, IN_TREE, cluster.handle(snapshot), recorder, signatures=signatures)
        return cls(framework, recorder)

    def decide(self, pod: Pod, snapshot: Snapshot, nominations: Nominator, percentage: int) -> tuple[Decision, Any]:
        decision = schedule(Cycle(self.framework, pod, snapshot, nominations), self.rotation, percentage)
        return decision, (facts_of(decision, snapshot), self.rotation.next_start)

    def evaluate_all(self, pod: Pod, snapshot: Snapshot, nominations: Nominator) -> Any:
        try:
            evaluation = evaluate_all(Cycle(self.framework, pod, snapshot, nominations))
        except ScheduleError as error:
            return str(error)
        scores = evaluation.scores
        by_plugin = (
            {name: plugin_scores.tolist() for name, plugin_scores in scores.plugins.items()}
            if scores is not None
            else None
        )
        total = scores.total.tolist() if scores is not None else None
        return evaluation.filter_result.rows.tolist(), diagnosis_facts(evaluation.diagnosis, snapshot), total, by_plugin


def facts_of(decision: Decision, snapshot: Snapshot) -> Any:
    """All that a decision says."""
    if isinstance(decision, Suggested):
        return decision
    if isinstance(decision, Failed):
        return decision.status.message
    error = decision.error
    return error.message, diagnosis_facts(error.diagnosis, snapshot), decision.post_filter


def diagnosis_facts(diagnosis: Diagnosis, snapshot: Snapshot) -> Any:
    """All that a diagnosis says."""
    statuses = {snapshot.name(row): status for row, status in diagnosis.statuses().items()}
    codes = diagnosis.codes()[snapshot.order].tolist()
    return statuses, codes, diagnosis.absent, diagnosis.unschedulable_plugins, diagnosis.pending_plugins


class WarmAndCold:
    """A cluster that changes, and both sides' view of it."""

    def __init__(self, cluster: RandomCluster, kinds: Sequence[Mapping[str, Any]], percentage: int) -> None:
        self.cache = builders.cache_of()
        self.kinds = kinds
        self.percentage = percentage
        self.pods: list[Pod] = []
        self.there: set[int] = set()
        self.waiting: dict[str, Pod] = {}
        self.nominator = Nominator(self.waiting.get)
        self.made = 0
        for index, keywords in enumerate(cluster.nodes):
            self.put_node(index, keywords)
        for keywords in cluster.running:
            self.place(self.new_pod(keywords), f"n{keywords['node'] % len(cluster.nodes)}")
        snapshot = self.cache.snapshot()
        self.warm = Side.of(cluster, snapshot, is_warm=True)
        self.cold = Side.of(cluster, snapshot, is_warm=False)

    def take(self, step: str, number: int, detail: Any) -> None:
        """Let one thing happen; attempts have to come to the same on both sides."""
        if step == "attempt":
            self.attempt(self.new_pod(self.kinds[number % len(self.kinds)]), is_placed=detail)
        elif step == "remove pod" and self.pods:
            self.cache.remove_pod(self.pods.pop(number % len(self.pods)))
        elif step == "put node":
            self.put_node(number, detail)
        elif step == "drop node" and len(self.there) > 1 and number in self.there:
            self.there.discard(number)
            self.cache.remove_node(f"n{number}")
        elif step == "nominate":
            self.nominate(self.kinds[number % len(self.kinds)] if number else None, f"n{detail}")
        elif step == "look at a fork":
            self.look_at_a_fork(self.kinds[number % len(self.kinds)])
        elif step == "try a group":
            self.try_a_group(number, detail)

    def attempt(self, pod: Pod, *, is_placed: bool) -> None:
        decision = self.decision(pod, self.cache.snapshot())
        if is_placed and isinstance(decision, Suggested):
            self.place(pod, decision.node_name)

    def nominate(self, keywords: Mapping[str, Any] | None, node_name: str) -> None:
        """Nominate another pod to the node; without one, end the nominations to it."""
        if keywords is None:
            for pod in self.nominator.pods(node_name):
                self.nominator.delete(pod)
            return
        pod = self.new_pod(keywords)
        self.waiting[pod.key] = pod
        self.nominator.add(pod, node_name)

    def decision(self, pod: Pod, snapshot: Snapshot) -> Decision:
        """What both sides decide."""
        surveys = [side.evaluate_all(pod, snapshot, self.nominator) for side in (self.warm, self.cold)]
        assert surveys[0] == surveys[1]
        (decision, warm), (_, cold) = (
            side.decide(pod, snapshot, self.nominator, self.percentage) for side in (self.warm, self.cold)
        )
        assert warm == cold
        assert isinstance(decision, Suggested | DoesNotFit | Failed)
        return decision

    def try_a_group(self, number: int, placed_members: set[int]) -> None:
        """Let pods of a group take places in a simulation, and some of them keep theirs."""
        fork = fork_with_point(self.cache.snapshot())
        places: list[tuple[int, Pod, str]] = []
        for member in range(GROUP_SIZE):
            pod = self.new_pod({**self.kinds[(number + member // 3) % len(self.kinds)], "group": f"group-{number}"})
            decision = self.decision(pod, fork)
            if isinstance(decision, Suggested):
                fork.add_pod(decision.row, pod.on_node(decision.node_name), pod_usage(pod))
                places.append((member, pod, decision.node_name))
        for member, pod, node_name in places:
            fork.remove_pod(fork.row_of[node_name], pod.uid)
            if member in placed_members:
                self.place(pod, node_name)

    def look_at_a_fork(self, keywords: Mapping[str, Any]) -> None:
        fork = self.cache.snapshot().fork()
        for row in fork.order.tolist():
            new_pod = self.new_pod(keywords)
            fork.add_pod(row, new_pod.on_node(fork.name(row)), pod_usage(new_pod))
        pod = self.new_pod(keywords)
        surveys = [side.evaluate_all(pod, fork, self.nominator) for side in (self.warm, self.cold)]
        assert surveys[0] == surveys[1]

    def new_pod(self, keywords: Mapping[str, Any]) -> Pod:
        self.made += 1
        return builders.pod(f"p{self.made}", **{key: value for key, value in keywords.items() if key != "node"})

    def place(self, pod: Pod, node_name: str) -> None:
        self.cache.add_pod(pod.on_node(node_name))
        self.pods.append(pod.on_node(node_name))

    def put_node(self, index: int, keywords: Mapping[str, Any]) -> None:
        self.there.add(index)
        self.cache.put_node(builders.node(f"n{index}", **keywords))
