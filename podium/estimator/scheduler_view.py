"""A member cluster as podium's scheduler sees it, updated as objects change.

Owns a cache with pod usages as the scheduler counts them, the pending pods, and the profile that decides,
whatever scheduler a pod names. Never does I/O and never carries out a decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from podium.cluster import Cache, pod_usage_in
from podium.cluster.cache import ReportBroken
from podium.engine.offline import OfflineHandle
from podium.engine.placing import Engine
from podium.engine.replicas import PLACED_MAX
from podium.estimator.accurate import EstimateSteps, Rules, replicas_in_steps
from podium.framework.contract.handle import Lister
from podium.framework.profile.observer import Observer
from podium.framework.profile.runtime import Framework
from podium.lib.clock import Clock
from podium.objects.core import Node, Pod
from podium.objects.resource_types import PODS, ResourceType
from podium.queues import Nominator


class SchedulerView:
    """One member cluster for dry runs.

    Args:
        lister_of: the listers of the plugins. The pod lister must receive each change before this object does.
    """

    def __init__(
        self,
        rules: Rules,
        lister_of: Callable[[ResourceType[Any]], Lister[Any]],
        report_broken: ReportBroken,
        clock: Clock,
        random: Random,
    ) -> None:
        config = rules.config
        self._cache = cache = Cache(report_broken, pod_usage_in(config.release))
        self._nominated = Nominator(lister_of(PODS).get)
        self._waiting: dict[str, Pod] = {}
        handle = OfflineHandle(clock, random, self._nominated, cache.snapshot, lister_of, release=config.release)
        self._framework = Framework(rules.profile, rules.classes, handle, Observer())
        self._engine = Engine(cache, self._nominated, config.percentage_of_nodes_to_score)

    def put_node(self, node: Node) -> None:
        """Add or update a node."""
        self._cache.put_node(node)

    def drop_node(self, name: str) -> None:
        """Remove a node."""
        self._cache.remove_node(name)

    def put_pod(self, pod: Pod) -> None:
        """Add or update a pod that has not ended."""
        if pod.node_name:
            self._stop_waiting(pod)
            self._cache.put_pod(pod)
        else:
            self._waiting[pod.uid] = pod
            self._nominated.add(pod)

    def drop_pod(self, pod: Pod) -> None:
        """Remove a pod."""
        self._stop_waiting(pod)
        self._cache.drop_pod(pod)

    def _stop_waiting(self, pod: Pod) -> None:
        if self._waiting.pop(pod.uid, None) is not None:
            self._nominated.delete(pod)

    def replicas_in_steps(
        self, replica: Pod, assumed_pods: Iterable[Pod], is_over: Callable[[], bool]
    ) -> EstimateSteps:
        """Compute in steps how many such pods would be bound after the pending pods and the assumed ones."""
        waiting = [pod for pod in self._waiting.values() if not pod.is_terminating]
        return replicas_in_steps(self._engine, self._framework, replica, [*waiting, *assumed_pods], PLACED_MAX, is_over)
