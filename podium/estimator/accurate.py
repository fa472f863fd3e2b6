"""Accurate estimates: how many replicas podium would bind, by a dry run of its filters after all pending pods.

Owns the dry run of replicas on a cluster, which is unchanged afterwards. If replicas do not affect each other, the
count is computed from the columns. If they do (affinity, spreading, host ports, volumes, devices), they are placed one
by one, as the scheduler would place them.

Cost: one pass over the nodes for replicas that do not affect each other, else one scheduling attempt for each.
Differs: Karmada has no such estimate. Replicas preempt no pods.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from typing import Final, TypeAlias

import msgspec
import numpy as np

from podium.config.types import Profile
from podium.engine.placing import Engine, Placed
from podium.estimator.errors import EstimateError
from podium.estimator.requirements import ReplicaRequirements, saturated
from podium.framework.contract.status import Code, ScheduleError
from podium.framework.cycle.schedule import Failed, Suggested
from podium.framework.cycle.search import Rotation, filter_all
from podium.framework.profile.runtime import Framework
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

PLACED_MAX: Final = 10_000
"""The maximum number of replicas that are placed one by one, and so the largest answer in that case."""

EstimateSteps: TypeAlias = Generator[None, None, int]
"""A running estimate. Its return value is the number of replicas."""


def without_preemption(profile: Profile) -> Profile:
    """The profile for dry runs, without DefaultPreemption: replicas preempt no pods.

    Planning a preemption would cost more than a hundred attempts.
    """
    everywhere = profile.plugins.multi_point
    enabled = tuple(plugin for plugin in everywhere.enabled if plugin.name != DefaultPreemption.__name__)
    return replace(profile, plugins=replace(profile.plugins, multi_point=replace(everywhere, enabled=enabled)))


def accurate_replicas(
    engine: Engine, framework: Framework, replica: Pod, waiting: Iterable[Pod] = (), most: int = PLACED_MAX
) -> int:
    """How many pods like the replica would be bound after the pending pods.

    Args:
        engine: nothing else may change it during the estimate. It is unchanged afterwards.
        framework: the profile that decides on every pod.
        waiting: pending pods. The scheduler tries them first, by priority and age.
        most: the maximum number of replicas to place one by one.

    Raises:
        EstimateError: an attempt failed with an error, not because the pod does not fit.
    """
    steps = replicas_in_steps(engine, framework, replica, waiting, most)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return int(done.value)


def replicas_in_steps(
    engine: Engine,
    framework: Framework,
    replica: Pod,
    waiting: Iterable[Pod] = (),
    most: int = PLACED_MAX,
    is_over: Callable[[], bool] = lambda: False,
) -> EstimateSteps:
    """Like `accurate_replicas`, but one attempt at a time, so that the caller can do other work in between.

    The cluster may change between two steps. Run the generator to its end, or close it.

    Args:
        is_over: whether to stop early. The answer is then the number of replicas placed so far.
    """
    placed_pods = _PlacedPods(engine, framework)
    try:
        count = yield from _counted(placed_pods, replica, sorted(waiting, key=_turn), most, is_over)
        while placed_pods.take_back_last():
            yield
        return count
    except ScheduleError as error:
        raise EstimateError(f"failed to estimate replicas: {error}") from error
    finally:
        placed_pods.undo()


def _counted(
    placed_pods: _PlacedPods, replica: Pod, waiting: Iterable[Pod], most: int, is_over: Callable[[], bool]
) -> EstimateSteps:
    if placed_pods.has_no_nodes():
        return 0
    for pod in waiting:
        placed_pods.place_if_feasible(pod)
        yield
        if is_over():
            return 0
    if placed_pods.is_gated(replica):
        return 0
    if _is_alone(replica.spec) and placed_pods.is_predictable():
        return saturated(placed_pods.count(replica))
    count = 0
    while count < most and not is_over() and placed_pods.place(_numbered(replica, count)):
        count += 1
        yield
    return count


def replica_of(requirements: ReplicaRequirements | None, name: str = "replica") -> Pod:
    """A pod with these requirements, for a workload of which nothing else is known."""
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
    """Whether a replica uses only resource amounts, so that one replica excludes another only by using them up."""
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


class _PlacedPods:
    """The pods placed during one estimate."""

    def __init__(self, engine: Engine, framework: Framework) -> None:
        # Each estimate starts its searches at the first node, so that the same question has the same answer.
        self._engine = replace(engine, rotation=Rotation())
        self._framework = framework
        self._placed: list[Placed] = []
        self._hopeless: set[tuple[str, int, tuple[tuple[str, str], ...]]] = set()

    def has_no_nodes(self) -> bool:
        """Whether the cluster has no nodes."""
        return not len(self._engine.cache.snapshot())

    def is_gated(self, pod: Pod) -> bool:
        """Whether a PreEnqueue plugin would gate the pod."""
        statuses = (plugin.pre_enqueue(pod) for plugin in self._framework.pre_enqueue)
        return any(status is not None and status.code is not Code.SUCCESS for status in statuses)

    def is_predictable(self) -> bool:
        """Whether only in-tree plugins decide, none at Permit, and no pod is nominated: then the columns suffice."""
        framework = self._framework
        plugins = framework.plugins.keys()
        return plugins <= IN_TREE.keys() and not framework.permit and not self._engine.nominator.node_names()

    def count(self, replica: Pod) -> int:
        """How many replicas fit on the nodes that pass the filters."""
        cycle = self._engine.cycle(self._framework, replica)
        snapshot, rows = cycle.snapshot, filter_all(cycle).rows
        counts = snapshot.allowed_pods.take(rows) - snapshot.pod_count.take(rows)
        for resource, amount in filter_requests(replica.spec).items():
            if amount > 0:
                left = snapshot.allocatable(resource).take(rows) - snapshot.requested(resource).take(rows)
                np.minimum(counts, left // amount, out=counts)
        return int(counts.sum())

    def place_if_feasible(self, pod: Pod) -> None:
        """Attempt to place a pod, unless an equal pod has failed and nothing has been placed since."""
        alike = (pod.metadata.namespace, id(pod.spec), tuple(sorted(pod.metadata.labels.items())))
        if alike not in self._hopeless and not self.place(pod) and not pod.status.nominated_node_name:
            self._hopeless.add(alike)

    def place(self, pod: Pod) -> bool:
        """Attempt to place a pod, and return whether it got a node."""
        if self.is_gated(pod):
            return False
        cycle = self._engine.cycle(self._framework, pod)
        decision = self._engine.decide(cycle)
        if isinstance(decision, Failed):
            raise ScheduleError(decision.status.message)
        if not isinstance(decision, Suggested):
            return False
        placed = self._engine.place(cycle, decision.node_name)
        if placed.status is not None:
            self._engine.take_back(placed)
            return False
        self._placed.append(placed)
        self._hopeless.clear()
        return True

    def take_back_last(self) -> bool:
        """Remove the pod that was placed last, and return whether there was one."""
        if not self._placed:
            return False
        self._engine.take_back(self._placed.pop())
        self._engine.cache.snapshot()
        return True

    def undo(self) -> None:
        """Remove all placed pods from the cluster."""
        while self.take_back_last():
            pass


def _numbered(replica: Pod, number: int) -> Pod:
    metadata = msgspec.structs.replace(
        replica.metadata, name=f"{replica.metadata.name}-{number}", uid=f"{replica.uid}-{number}"
    )
    return Pod(metadata=metadata, spec=replica.spec)
