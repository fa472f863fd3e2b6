"""The event handlers of all resources but pods and nodes, chosen by what a change of each can mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from podium.client.informer_set import InformerSet
from podium.config import Release
from podium.daemon.companions import follow_devices
from podium.daemon.handlers import (
    RESOURCE_EVENTS,
    DeviceClassHandler,
    DeviceTaintRuleHandler,
    PodGroupHandler,
    ResourceClaimHandler,
    ResourceHandler,
)
from podium.framework.contract.handle import Handle
from podium.framework.profile.runtime import Framework
from podium.lib.clock import Clock
from podium.objects.resource_types import (
    CUSTOM,
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    POD_GROUPS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    ResourceType,
)
from podium.queues import SchedulingQueue
from podium.telemetry import Metrics

_HANDLERS: Final[Mapping[ResourceType[Any], type[ResourceHandler]]] = {POD_GROUPS: PodGroupHandler}
"""The handlers of resources whose changes matter to more than the pods that wait for them."""


def add_resource_handlers(
    informers: InformerSet,
    queue: SchedulingQueue,
    clock: Clock,
    metrics: Metrics,
    release: Release,
    handle: Handle,
    frameworks: Mapping[str, Framework],
) -> None:
    """Have every watched resource but pods and nodes requeue the pods that wait for its changes.

    Args:
        frameworks: the profiles at any time, by name; they may be replaced.
    """
    for resource in tuple(informers.resources):
        if resource == DEVICE_TAINT_RULES:
            rules, slices = release.devices, informers.informer(RESOURCE_SLICES)
            informers.informer(resource).add_handler(DeviceTaintRuleHandler(queue, clock, metrics, rules, slices.list))
        events = resource.event if resource.gate == CUSTOM else RESOURCE_EVENTS.get(resource)
        if events is None:
            continue
        if resource == RESOURCE_CLAIMS:
            rules = release.devices
            follow_devices(handle, ResourceClaimHandler(events, queue, clock, metrics, rules), metrics)
            continue
        if resource == DEVICE_CLASSES:
            informers.informer(resource).add_handler(DeviceClassHandler(frameworks.values()))
        handler = _HANDLERS.get(resource, ResourceHandler)(events, queue, clock, metrics)
        informers.informer(resource).add_handler(handler)
