"""A cluster that stands still: what the daemon keeps up to date, built once from the objects of a question.

Owns the cache, the nominations and the frameworks over one world. Never does I/O: plugins get a client that refuses,
a clock that stands still and a seeded source of randomness, so that the same question has the same answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from random import Random
from typing import Final

from podium.binder import WaitingPods
from podium.cluster import Cache
from podium.config import KubeSchedulerConfiguration
from podium.framework.interface import Plugin
from podium.framework.runtime import Framework
from podium.framework.status import Status, demand_status
from podium.framework.still import QuietHandle, SilentObserver
from podium.lib.clock import ManualClock
from podium.lib.error_words import words_of
from podium.objects.core import Node, Pod
from podium.objects.errors import FieldError
from podium.objects.requests import filter_requests
from podium.objects.resource_types import NODES, PODS
from podium.objects.unreadable import kind_of
from podium.queues import Nominator
from podium.whatif.errors import ManifestError, WhatIfError
from podium.whatif.world import World

_NOW_S: Final = 4_102_444_800.0
"""2100-01-01: after every date that an object of a question has."""

_SEED: Final = 1


class StillCluster:
    """One world, and the profiles of one configuration over it.

    Nodes and pods enter the cache in order of namespace and name.

    Args:
        asked: the keys of pods that the question is about, which are not there yet, whatever node they name.

    Raises:
        ManifestError: an object has a field that cannot be read.
        PluginError, ConfigError: a profile cannot be built.
    """

    def __init__(
        self,
        config: KubeSchedulerConfiguration,
        world: World,
        classes: Mapping[str, type[Plugin]],
        asked: Collection[str] = (),
    ) -> None:
        self.world = world
        self.percentage_of_nodes_to_score = config.percentage_of_nodes_to_score
        self.cache = Cache(_refuse_broken_nodes)
        pods = world.objects(PODS)
        for node in world.objects(NODES).values():
            self.cache.put_node(node)
        for pod in pods.values():
            if pod.node_name and pod.key not in asked:
                self.cache.add_pod(pod)
        self.nominated = Nominator(pods.get)
        clock = ManualClock(_NOW_S)
        # Nobody comes as far as Permit.
        waiting_pods = WaitingPods(clock)
        handle = QuietHandle(clock, Random(_SEED), waiting_pods, self.nominated, self.cache.snapshot, world.lister)
        self._frameworks = {
            profile.scheduler_name: Framework(profile, classes, handle, SilentObserver()) for profile in config.profiles
        }
        for pod in pods.values():
            if not pod.node_name and pod.spec.scheduler_name in self._frameworks:
                self.nominated.add(pod)

    def framework_for(self, pod: Pod) -> Framework:
        """The profile that the pod asks for.

        Raises:
            WhatIfError: there is none.
            ManifestError: the pod asks for amounts that cannot be read.
        """
        try:
            filter_requests(pod.spec)
        except FieldError as error:
            raise ManifestError(f"Pod {pod.key}: {error}") from error
        framework = self._frameworks.get(pod.spec.scheduler_name)
        if framework is None:
            names = ", ".join(sorted(self._frameworks))
            raise WhatIfError(
                f"Pod {pod.key}: spec.schedulerName: no profile is named {pod.spec.scheduler_name!r}, only {names}"
            )
        return framework

    def gates_of(self, pod: Pod) -> tuple[Status, ...]:
        """What keeps the pod from being tried at all.

        Raises:
            WhatIfError: no profile serves the pod, or a plugin failed.
        """
        gates = []
        for plugin in self.framework_for(pod).pre_enqueue:
            try:
                status = demand_status(plugin.pre_enqueue(pod))
            except BaseException as error:
                raise WhatIfError(f'running PreEnqueue plugin "{plugin.name}": {words_of(error)}') from error
            if status is not None:
                gates.append(status.by(plugin.name))
        return tuple(gates)


def _refuse_broken_nodes(item: Node | Pod, error: FieldError) -> None:
    """A pod with such a field closes its node, and the answer says so."""
    if isinstance(item, Pod):
        return
    raise ManifestError(f"{kind_of(item)} {item.key}: {error}") from error
