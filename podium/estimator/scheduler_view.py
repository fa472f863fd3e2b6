"""A member cluster as podium's scheduler sees it, kept up to date as objects come and go.

Owns a cache with the scheduler's own pod_usages, the pods that wait, and the profile that decides: podium's defaults,
whatever scheduler a pod names. Never does I/O, and nothing that it decides is carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from podium.cluster import Cache
from podium.cluster.cache import ReportBroken
from podium.config import default_configuration
from podium.engine.offline import OfflineHandle, SilentObserver
from podium.engine.placing import Engine
from podium.estimator.accurate import PLACED_MAX, EstimateSteps, replicas_in_steps, without_preemption
from podium.framework.contract.interface import Lister
from podium.framework.profile.runtime import Framework
from podium.lib.clock import Clock
from podium.objects.core import Node, Pod
from podium.objects.resource_types import PODS, ResourceType
from podium.plugins import IN_TREE
from podium.queues import Nominator


class SchedulerView:
    """One member cluster, to try replicas out on.

    Args:
        lister_of: the other kinds of objects, for the plugins; and the pods, told of each before this is.
    """

    def __init__(
        self,
        lister_of: Callable[[ResourceType[Any]], Lister[Any]],
        report_broken: ReportBroken,
        clock: Clock,
        random: Random,
    ) -> None:
        self._cache = cache = Cache(report_broken)
        self._nominated = Nominator(lister_of(PODS).get)
        self._waiting: dict[str, Pod] = {}
        handle = OfflineHandle(clock, random, self._nominated, cache.snapshot, lister_of)
        config = default_configuration()
        self._framework = Framework(without_preemption(config.profiles[0]), IN_TREE, handle, SilentObserver())
        self._engine = Engine(cache, self._nominated, config.percentage_of_nodes_to_score)

    def put_node(self, node: Node) -> None:
        """Add a node or bring it up to date."""
        self._cache.put_node(node)

    def drop_node(self, name: str) -> None:
        """Forget a node."""
        self._cache.remove_node(name)

    def put_pod(self, pod: Pod) -> None:
        """Add a pod that has not ended, or bring it up to date."""
        if pod.node_name:
            self._stop_waiting(pod)
            self._cache.put_pod(pod)
        else:
            self._waiting[pod.uid] = pod
            self._nominated.add(pod)

    def drop_pod(self, pod: Pod) -> None:
        """Forget a pod."""
        self._stop_waiting(pod)
        self._cache.drop_pod(pod)

    def _stop_waiting(self, pod: Pod) -> None:
        if self._waiting.pop(pod.uid, None) is not None:
            self._nominated.delete(pod)

    def replicas_in_steps(self, replica: Pod, assumed: Iterable[Pod], is_over: Callable[[], bool]) -> EstimateSteps:
        """How many such pods would be bound after those that wait, and those that are assumed to be on their way."""
        waiting = [pod for pod in self._waiting.values() if not pod.is_terminating]
        return replicas_in_steps(self._engine, self._framework, replica, [*waiting, *assumed], PLACED_MAX, is_over)
