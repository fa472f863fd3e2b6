"""Tests that several plugins' queueing hints share: could the event help this pod?

Source: kubernetes pkg/scheduler/util/utils.go and framework/plugins/helper, v1.36.2 and v1.37.2.
Differs: a change of one pod in flight never counts as one of another; in upstream's newest release it does for some
plugins.
"""

from __future__ import annotations

from podium.config import EventRules
from podium.framework import contract as fwk
from podium.objects.core import Pod


def queue_if(helps: bool) -> fwk.QueueingHint:
    """Return Queue if the event may help, otherwise Skip."""
    return fwk.QueueingHint.QUEUE if helps else fwk.QueueingHint.SKIP


def is_about(pod: Pod, other_pod: Pod | None) -> bool:
    """Return whether the changed pod is this one."""
    return other_pod is not None and other_pod.uid == pod.uid


def occupies_node(pod: Pod) -> bool:
    """Return whether the pod is on a node, or nominated to one."""
    return bool(pod.node_name or pod.status.nominated_node_name)


def pod_events(
    rules: EventRules,
    of_assigned: fwk.ActionType,
    of_own: fwk.ActionType,
    hint: fwk.HintFunction,
    scope: fwk.HintScope = fwk.HintScope.SPEC,
) -> tuple[fwk.EventRegistration, ...]:
    """Return the registrations for changes of pods on nodes, and for changes of the waiting pod itself.

    They are one where pods in all states are one resource.
    """
    if rules.assigned_pods is rules.own_pod:
        return (fwk.on(rules.own_pod, of_assigned | of_own, hint=hint, scope=scope),)
    return (
        fwk.on(rules.assigned_pods, of_assigned, hint=hint, scope=scope),
        fwk.on(rules.own_pod, of_own, hint=hint, scope=scope),
    )


def taint_events(
    rules: EventRules, after_node_change: fwk.HintFunction, after_toleration_change: fwk.HintFunction
) -> tuple[fwk.EventRegistration, fwk.EventRegistration]:
    """Return the events that may help a pod rejected for taints or a cordon: changes of nodes or of tolerations."""
    return (
        fwk.on(
            fwk.EventResource.NODE,
            fwk.ActionType.ADD,
            fwk.ActionType.UPDATE_NODE_TAINT,
            hint=after_node_change,
            scope=fwk.HintScope.SPEC,
        ),
        fwk.on(
            rules.own_pod,
            fwk.ActionType.UPDATE_POD_TOLERATION,
            hint=after_toleration_change,
            scope=fwk.HintScope.SPEC,
        ),
    )
