"""Tests that several plugins' queueing hints share: could the event help this pod?

Source: kubernetes pkg/scheduler/util/utils.go and framework/plugins/helper, v1.36.2.
"""

from __future__ import annotations

from podium.framework.contract.cluster_event import (
    ActionType,
    EventRegistration,
    HintFunction,
    HintScope,
    QueueingHint,
    on,
)
from podium.objects.core import Pod
from podium.objects.resource_types import EventResource


def queue_if(helps: bool) -> QueueingHint:
    """Return Queue if the event may help, otherwise Skip."""
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP


def is_about(pod: Pod, changed: Pod | None) -> bool:
    """Whether the changed pod is this one."""
    return changed is not None and changed.uid == pod.uid


def occupies_node(pod: Pod) -> bool:
    """Whether the pod is on a node, or nominated to one."""
    return bool(pod.node_name or pod.status.nominated_node_name)


def taint_events(
    after_node_change: HintFunction, after_toleration_change: HintFunction
) -> tuple[EventRegistration, EventRegistration]:
    """The events that may help a pod rejected for taints, a cordon's included: a change of nodes or of tolerations."""
    return (
        on(
            EventResource.NODE,
            ActionType.ADD,
            ActionType.UPDATE_NODE_TAINT,
            hint=after_node_change,
            scope=HintScope.SPEC,
        ),
        on(EventResource.POD, ActionType.UPDATE_POD_TOLERATION, hint=after_toleration_change, scope=HintScope.SPEC),
    )
