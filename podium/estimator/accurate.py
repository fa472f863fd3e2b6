"""How many replicas podium itself would bind: the scheduler's own filters, with what waits in the queue placed first.

Owns trying replicas out on a cluster and leaving it as it was. Where replicas do not mind each other the count is read
off the columns; where they do (affinity, spreading, host ports, volumes, devices) they are placed one by one, as the
scheduler would.

Cost: one pass over the nodes for replicas that do not mind each other, else one scheduling attempt for each.
Differs: Karmada has no such estimate. Nobody is preempted for a replica.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np

from podium.cluster import Cache
from podium.config.types import Profile
from podium.estimator.errors import EstimateError
from podium.estimator.requirements import ReplicaRequirements, saturated
from podium.framework.cycle_state import CycleState
from podium.framework.diagnosis import Diagnosis
from podium.framework.runtime import Framework
from podium.framework.schedule import Failed, Suggested, schedule
from podium.framework.search import Rotation, judge_all
from podium.framework.status import Code, ScheduleError
from podium.objects.core import (
    Affinity,
    Container,
    NodeAffinity,
    ObjectMeta,
    Pod,
    PodSpec,
    ResourceRequirements,
    once_per_spec,
)
from podium.objects.requests import filter_requests
from podium.plugins import IN_TREE
from podium.plugins.default_preemption import DefaultPreemption
from podium.queues import Nominator

PLACED_MAX: Final = 10_000
"""How many replicas are placed one by one; a larger answer than this is never given for those."""

Steps: TypeAlias = Generator[None, None, int]
"""An estimate under way; its value is the number."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A cluster that stands still during an estimate, and the profile that decides on it."""

    cache: Cache
    nominated: Nominator
    framework: Framework
    percentage_of_nodes_to_score: int


def without_preemption(profile: Profile) -> Profile:
    """The profile as it tries replicas out: nobody makes room for one that does not fit.

    Planning that would cost more than a hundred attempts.
    """
    everywhere = profile.plugins.multi_point
    enabled = tuple(plugin for plugin in everywhere.enabled if plugin.name != DefaultPreemption.__name__)
    return replace(profile, plugins=replace(profile.plugins, multi_point=replace(everywhere, enabled=enabled)))


def accurate_replicas(engine: Engine, replica: Pod, waiting: Iterable[Pod] = (), most: int = PLACED_MAX) -> int:
    """How many pods like the replica would be bound, after those that wait already.

    Args:
        waiting: pods without a node; the scheduler tries them first, by priority and age.
        most: where to stop when replicas are placed one by one.

    Raises:
        EstimateError: an attempt failed for another reason than that the pod does not fit.
    """
    steps = replicas_in_steps(engine, replica, waiting, most)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return int(done.value)


def replicas_in_steps(
    engine: Engine,
    replica: Pod,
    waiting: Iterable[Pod] = (),
    most: int = PLACED_MAX,
    is_over: Callable[[], bool] = lambda: False,
) -> Steps:
    """As `accurate_replicas`, one attempt at a time: whoever asks may do other things in between.

    Between two steps the cluster may change as it likes. To be run to its end, or closed.

    Args:
        is_over: whether to stop; the answer is then what has been placed so far.
    """
    trial = _Trial(engine)
    try:
        count = yield from _counted(trial, replica, sorted(waiting, key=_turn), most, is_over)
        while trial.take_back_last():
            yield
        return count
    except ScheduleError as error:
        raise EstimateError(f"failed to estimate replicas: {error}") from error
    finally:
        trial.undo()


def _counted(trial: _Trial, replica: Pod, waiting: Iterable[Pod], most: int, is_over: Callable[[], bool]) -> Steps:
    if trial.has_no_nodes():
        return 0
    for pod in waiting:
        trial.place_unless_hopeless(pod)
        yield
        if is_over():
            return 0
    if trial.is_gated(replica):
        return 0
    if _is_alone(replica.spec) and trial.is_without_surprises():
        return saturated(trial.count(replica))
    count = 0
    while count < most and not is_over() and trial.place(_numbered(replica, count)):
        count += 1
        yield
    return count


def replica_of(requirements: ReplicaRequirements | None, name: str = "replica") -> Pod:
    """A pod that needs what the requirements say, for a workload of which nothing else is known."""
    needed = requirements or ReplicaRequirements()
    claim = needed.node_claim
    affinity = claim.hard_node_affinity if claim is not None else None
    spec = PodSpec(
        containers=(Container(name="replica", resources=ResourceRequirements(requests=needed.resource_request)),),
        node_selector=claim.node_selector if claim is not None else {},
        tolerations=claim.tolerations if claim is not None else (),
        affinity=Affinity(node_affinity=NodeAffinity(required=affinity)) if affinity is not None else None,
    )
    return Pod(metadata=ObjectMeta(name=name, namespace=needed.namespace, uid=name), spec=spec)


def _turn(pod: Pod) -> tuple[int, str, str]:
    return -pod.priority, pod.metadata.creation_timestamp or "", pod.key


@once_per_spec
def _is_alone(spec: PodSpec) -> bool:
    """Whether a replica takes nothing but amounts, so that no replica bars another from a node with room."""
    affinity = spec.affinity
    terms = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ()
    containers = (*spec.containers, *spec.init_containers)
    return not (
        any(each is not None and each.required for each in terms)
        or any(each.when_unsatisfiable != "ScheduleAnyway" for each in spec.topology_spread_constraints)
        or any(port.host_port for container in containers for port in container.ports)
        or spec.volumes
        or spec.resource_claims
        or spec.scheduling_group is not None
    )


class _Placed(NamedTuple):
    """One pod on a node for the time being. `promised`: the node it was nominated to."""

    state: CycleState
    pod: Pod
    node_name: str
    promised: str | None


class _Trial:
    """Pods placed for the time of one estimate."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._rotation = Rotation()
        self._placed: list[_Placed] = []
        self._hopeless: set[tuple[str, int, tuple[tuple[str, str], ...]]] = set()

    def has_no_nodes(self) -> bool:
        """Whether there is nothing to place anything on."""
        return not len(self._engine.cache.snapshot())

    def is_gated(self, pod: Pod) -> bool:
        """Whether the queue would hold the pod back."""
        statuses = (plugin.pre_enqueue(pod) for plugin in self._engine.framework.pre_enqueue)
        return any(status is not None and status.code is not Code.SUCCESS for status in statuses)

    def is_without_surprises(self) -> bool:
        """Whether nothing but podium's own plugins decides, and no room is promised to anyone."""
        framework = self._engine.framework
        plugins = framework.plugins.keys()
        return plugins <= IN_TREE.keys() and not framework.permit and not self._engine.nominated.node_names()

    def count(self, replica: Pod) -> int:
        """How often the replica goes onto the nodes that take it at all."""
        snapshot = self._engine.cache.snapshot()
        diagnosis = Diagnosis(table_size=len(snapshot.nodes))
        rows = judge_all(
            self._engine.framework, CycleState(), replica, snapshot, self._engine.nominated, diagnosis
        ).rows
        counts = snapshot.allowed_pods.take(rows) - snapshot.pod_count.take(rows)
        for resource, amount in filter_requests(replica.spec).items():
            if amount > 0:
                left = snapshot.allocatable(resource).take(rows) - snapshot.requested(resource).take(rows)
                np.minimum(counts, left // amount, out=counts)
        return int(counts.sum())

    def place_unless_hopeless(self, pod: Pod) -> None:
        """One attempt, unless one just like it has failed and nothing has been placed since."""
        alike = (pod.metadata.namespace, id(pod.spec), tuple(sorted(pod.metadata.labels.items())))
        if alike not in self._hopeless and not self.place(pod) and not pod.status.nominated_node_name:
            self._hopeless.add(alike)

    def place(self, pod: Pod) -> bool:
        """One attempt; whether the pod found a node."""
        if self.is_gated(pod):
            return False
        engine, state = self._engine, CycleState()
        decision = schedule(
            engine.framework,
            state,
            pod,
            engine.cache.snapshot(),
            engine.nominated,
            self._rotation,
            engine.percentage_of_nodes_to_score,
        )
        if isinstance(decision, Failed):
            raise ScheduleError(decision.status.message)
        return isinstance(decision, Suggested) and self._take(state, pod, decision.node_name)

    def _take(self, state: CycleState, pod: Pod, node_name: str) -> bool:
        engine = self._engine
        engine.cache.assume_pod(pod, node_name)
        # It is on a node now: what was promised to it would be taken twice.
        self._placed.append(_Placed(state, pod, node_name, engine.nominated.node_of(pod.uid)))
        engine.nominated.delete(pod)
        status = engine.framework.run_reserve(state, pod, node_name)
        if status is None:
            status = engine.framework.run_permit(state, pod, node_name).status
        if status is not None:
            self.take_back_last()
            return False
        self._hopeless.clear()
        return True

    def take_back_last(self) -> bool:
        """Take back what was placed last; whether there was anything."""
        if not self._placed:
            return False
        engine, placed = self._engine, self._placed.pop()
        pod = placed.pod
        engine.framework.run_unreserve(placed.state, pod, placed.node_name)
        # A pod that waited may have been bound meanwhile.
        if engine.cache.is_assumed(pod.uid):
            engine.cache.forget_pod(pod)
        if placed.promised is not None and engine.nominated.node_of(pod.uid) is None:
            engine.nominated.add(pod, placed.promised)
        engine.cache.snapshot()
        return True

    def undo(self) -> None:
        """Leave the cluster as it was."""
        while self.take_back_last():
            pass


def _numbered(replica: Pod, number: int) -> Pod:
    metadata = msgspec.structs.replace(
        replica.metadata, name=f"{replica.metadata.name}-{number}", uid=f"{replica.uid}-{number}"
    )
    return Pod(metadata=metadata, spec=replica.spec)
