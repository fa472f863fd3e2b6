"""Accurate estimates: how many replicas podium would bind, by a dry run of its filters after all pending pods.

Owns the order of a dry run, the pending pods first, and its steps; `engine.replicas` counts or places the replicas.

Differs: Karmada has no such estimate. Replicas preempt no pods.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from podium.config import KubeSchedulerConfiguration, Release, default_configuration
from podium.config.types import PluginSet, Profile
from podium.engine.placing import Engine
from podium.engine.replicas import PLACED_MAX, ClaimCreator, Replicas, make_copy, no_claims
from podium.estimator.errors import EstimateError
from podium.estimator.requirements import ReplicaRequirements, saturate
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.status import ScheduleError
from podium.framework.profile.runtime import Framework
from podium.objects.affinity import Affinity, NodeAffinity
from podium.objects.core import Container, Pod, PodSpec, ResourceRequirements
from podium.objects.meta import ObjectMeta
from podium.plugins import IN_TREE
from podium.queues import in_queue_order

_PREEMPTING: Final = frozenset({"DefaultPreemption", "PreemptionToleration"})

EstimateSteps: TypeAlias = Generator[None, None, int]
"""A running estimate. Its return value is the number of replicas."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides on replicas and pending pods, whatever scheduler they name.

    Attributes:
        config: its first profile decides.
        classes: the available plugins by name.
        as_of: returns the same rules as a release has them, or raises EstimateError; None if the release is fixed.
    """

    config: KubeSchedulerConfiguration = field(default_factory=default_configuration)
    classes: Mapping[str, type[Plugin]] = field(default_factory=lambda: IN_TREE)
    as_of: Callable[[Release], Rules] | None = None

    @property
    def profile(self) -> Profile:
        """The profile for dry runs, without plugins that do nothing but preempt: replicas preempt no pods.

        Planning a preemption would cost more than a hundred attempts.
        """
        profile = self.config.profiles[0]
        plugins = profile.plugins
        return replace(
            profile,
            plugins=replace(
                plugins,
                multi_point=_without_preemption(plugins.multi_point),
                post_filter=_without_preemption(plugins.post_filter),
            ),
        )


def _without_preemption(plugins: PluginSet) -> PluginSet:
    return replace(plugins, enabled=tuple(plugin for plugin in plugins.enabled if plugin.name not in _PREEMPTING))


def accurate_replicas(
    engine: Engine,
    framework: Framework,
    replica: Pod,
    waiting: Iterable[Pod] = (),
    create_claims: ClaimCreator = no_claims,
    replicas_max: int = PLACED_MAX,
    is_over: Callable[[], bool] = lambda: False,
) -> int:
    """Return how many pods like the replica would be bound after the pending pods.

    Args:
        engine: nothing else may change it during the estimate. It is unchanged afterwards.
        framework: the profile that decides on every pod.
        waiting: pending pods. The scheduler tries them first, in the order of the QueueSort plugin.
        create_claims: creates the claims that a replica has for itself.
        replicas_max: the maximum number of replicas to place one by one.
        is_over: whether to stop early; the answer is then the number of replicas placed so far.

    Raises:
        EstimateError: an attempt failed with an error, not because the pod does not fit.
    """
    steps = replicas_in_steps(engine, framework, replica, waiting, replicas_max, is_over, create_claims)
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return int(stop.value)


def replicas_in_steps(
    engine: Engine,
    framework: Framework,
    replica: Pod,
    waiting: Iterable[Pod] = (),
    replicas_max: int = PLACED_MAX,
    is_over: Callable[[], bool] = lambda: False,
    create_claims: ClaimCreator = no_claims,
) -> EstimateSteps:
    """Estimate as `accurate_replicas` does, one attempt at a time, so that the caller can do other work in between.

    The cluster may change between two steps. Run the generator to its end, or close it.

    Args:
        is_over: whether to stop early. The answer is then the number of replicas placed so far.
    """
    placed_pods = Replicas(engine, framework, create_claims)
    try:
        count = yield from _count_placed(
            placed_pods, replica, in_queue_order(sorted(waiting, key=_age), framework.queue_sort), replicas_max, is_over
        )
        while placed_pods.take_back_last():
            yield
        return count
    except ScheduleError as error:
        raise EstimateError(f"failed to estimate replicas: {error}") from error
    finally:
        placed_pods.undo()


def _count_placed(
    placed_pods: Replicas, replica: Pod, waiting: Iterable[Pod], replicas_max: int, is_over: Callable[[], bool]
) -> EstimateSteps:
    if placed_pods.has_no_nodes():
        return 0
    for pod in waiting:
        placed_pods.place_if_feasible(pod)
        yield
        if is_over():
            return 0
    if placed_pods.gate_of(replica) is not None:
        return 0
    if (counts := placed_pods.count(replica)) is not None:
        return saturate(sum(counts.values()))
    count = 0
    while count < replicas_max and not is_over() and placed_pods.place(make_copy(replica, count)) is not None:
        count += 1
        yield
    return count


def replica_of(requirements: ReplicaRequirements | None, name: str = "replica") -> Pod:
    """Return a pod with these requirements, for a workload of which nothing else is known."""
    requirements = requirements or ReplicaRequirements()
    claim = requirements.node_claim
    affinity = claim.hard_node_affinity if claim is not None else None
    spec = PodSpec(
        containers=(Container(name="replica", resources=ResourceRequirements(requests=requirements.resource_request)),),
        node_selector=claim.node_selector if claim is not None else {},
        tolerations=claim.tolerations if claim is not None else (),
        affinity=Affinity(node_affinity=NodeAffinity(required=affinity)) if affinity is not None else None,
    )
    return Pod(metadata=ObjectMeta(name=name, namespace=requirements.namespace, uid=name), spec=spec)


def _age(pod: Pod) -> tuple[str, str]:
    return pod.metadata.creation_timestamp or "", pod.key
