"""Serves plugins that need more than decisions. Of the modules that wire a scheduler, only this one names plugins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Final

from podium.client.informer_set import InformerSet
from podium.daemon.coscheduling import PodGroupKeeper
from podium.daemon.elastic_quotas import QuotaKeeper
from podium.daemon.handlers import ResourceHandler
from podium.daemon.observers import DeviceMetrics
from podium.daemon.restarts import RestartNeededError
from podium.engine.gang_story import coscheduling_in
from podium.framework.contract.handle import ApiClient, Handle
from podium.framework.profile.runtime import Framework
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.custom_resources import custom_resources
from podium.objects.resource_types import COSCHEDULING_POD_GROUPS, PODS
from podium.plugins.contrib.capacity_scheduling.objects import ELASTIC_QUOTAS
from podium.plugins.contrib.capacity_scheduling.plugin import CapacityScheduling
from podium.plugins.contrib.coscheduling.plugin import Coscheduling
from podium.plugins.default_preemption import DefaultPreemption
from podium.plugins.shared.cluster_devices import ClusterDevices
from podium.queues import SchedulingQueue
from podium.server.supervision import Tasks
from podium.telemetry import Metrics

log = get_logger("scheduler")

PREEMPTING: Final = DefaultPreemption.name
"""The plugin under whose name waiting pods are rejected that are preempted."""


def follow_devices(handle: Handle, handler: ResourceHandler, metrics: Metrics) -> None:
    """Have an allocation that was written requeue pods at once, before the watch shows it."""
    devices = handle.shared(ClusterDevices)
    devices.observer = DeviceMetrics(metrics)
    devices.claims.add_handler(handler)
    devices.lost = handler.on_update
    devices.claims.read()


def pod_group_keeper(
    frameworks: Iterable[Framework], queue: SchedulingQueue, client: ApiClient, informers: InformerSet, clock: Clock
) -> PodGroupKeeper | None:
    """Return the keeper of PodGroups, as a handler of its informers, or None if no profile keeps gangs together."""
    plugin = next(filter(None, map(coscheduling_in, frameworks)), None)
    if plugin is None:
        return None
    keeper = PodGroupKeeper(plugin.gangs, queue, client, informers, clock)
    informers.informer(PODS).add_handler(keeper)
    informers.informer(COSCHEDULING_POD_GROUPS).add_handler(keeper)
    return keeper


def companion_tasks(
    frameworks: Collection[Framework],
    queue: SchedulingQueue,
    client: ApiClient,
    informers: InformerSet,
    clock: Clock,
) -> Tasks:
    """Return what runs beside scheduling for the plugins of these profiles, by name."""
    tasks: dict[str, Callable[[], Awaitable[None]]] = {}
    groups = pod_group_keeper(frameworks, queue, client, informers, clock)
    if groups is not None:
        tasks["pod groups"] = groups.run
    plugins = (framework.plugins.get(CapacityScheduling.name) for framework in frameworks)
    plugin = next((plugin for plugin in plugins if isinstance(plugin, CapacityScheduling)), None)
    if plugin is not None:
        keeper = QuotaKeeper(plugin.quotas, client, informers)
        informers.informer(PODS).add_handler(keeper)
        informers.informer(ELASTIC_QUOTAS).add_handler(keeper)
        tasks["elastic quotas"] = keeper.run
    return tasks


def report_missing(informers: InformerSet) -> None:
    """Log the custom resources that plugins watch and that the API server does not serve."""
    for resource in custom_resources():
        if resource in informers.resources and informers.is_absent(resource):
            log.warning(
                "The API server does not serve a resource that a plugin reads",
                resource=f"{resource.plural}.{resource.group}",
                advice="install its CustomResourceDefinition, or disable the plugin",
            )


def demand_same_companions(former: Framework, current: Framework) -> None:
    """Check that the plugins of the other profile need what those of this one have.

    Raises:
        RestartNeededError: they do not.
    """
    if coscheduling_in(current) is not coscheduling_in(former):
        raise RestartNeededError(f"{Coscheduling.name}: cannot be changed while podium runs, restart it")
