"""The Events of the provisioner, as values.

Source: karpenter pkg/controllers/provisioning/scheduling/events.go and pkg/controllers/disruption/events, v1.15.0, for
the reasons, and by Karpenter's rules for the texts where it has them.
Differs: a text ends with the id of its plan, which log and ConfigMap have, too.
"""

from __future__ import annotations

from typing import Final

from podium.binder.events.event import NOTE_BYTES_MAX, Event, ObjectReference, reference_to, truncate
from podium.objects.core import Pod
from podium.provisioner.apis.objects import ProvidedNode
from podium.provisioner.provisioning.plan import NodePlan
from podium.provisioner.provisioning.reasons import in_own_words as own_wording
from podium.provisioner.provisioning.reasons import removal_reason

CONTROLLER: Final = "podium-provisioner"
_NORMAL: Final = "Normal"
_WARNING: Final = "Warning"
_ACTION: Final = "Provisioning"


def nomination(pod: Pod, node: str, plan: str = "", *, in_own_words: bool = False) -> Event:
    """Return an Event: the pod will fit on this node."""
    note = f"The pod will fit on node {node}" if in_own_words else f"Pod should schedule on: node/{node}"
    return _about_pod(pod, _NORMAL, "Nominated", note, plan)


def failed_scheduling(pod: Pod, reason: str, plan: str = "", *, in_own_words: bool = False) -> Event:
    """Return an Event: no node that can be bought would help the pod."""
    note = (
        f"No node that can be bought helps the pod: {reason}" if in_own_words else f"Failed to schedule pod, {reason}"
    )
    return _about_pod(pod, _WARNING, "FailedScheduling", note, plan)


def node_planned(pod: Pod, node: NodePlan) -> Event:
    """Return an Event: a node would be bought for the pod, if anything was."""
    return _about_pod(pod, _NORMAL, "NodePlanned", f"A node would be bought for this pod: {node.text}", node.plan_id)


def removal_planned(node: ProvidedNode, reason: str, plan: str = "", *, in_own_words: bool = False) -> Event:
    """Return an Event: the node would be removed, if anything was."""
    reason = own_wording(removal_reason(reason)) if in_own_words else reason
    return _about_node(node, "RemovalPlanned", f"The node would be removed: {reason}", plan)


def removing(node: ProvidedNode, reason: str, plan: str = "", *, in_own_words: bool = False) -> Event:
    """Return an Event: the node is being removed."""
    own_reason = own_wording(removal_reason(reason))
    note = f"The node is being removed: {own_reason}" if in_own_words else f"Disrupting Node: {reason}"
    return _about_node(node, "DisruptionTerminating", note, plan)


def _about_pod(pod: Pod, kind: str, reason: str, note: str, plan: str) -> Event:
    return Event(CONTROLLER, reference_to(pod), kind, reason, _ACTION, _with_plan(note, plan))


def _about_node(node: ProvidedNode, reason: str, note: str, plan: str) -> Event:
    regarding = ObjectReference("v1", "Node", node.name, uid=node.metadata.uid)
    return Event(CONTROLLER, regarding, _NORMAL, reason, "Disruption", _with_plan(note, plan))


def _with_plan(note: str, plan: str) -> str:
    """Return the note with the id of the plan; it does not count when Events are compared."""
    suffix = f" (plan {plan})" if plan else ""
    # In front of a long reason's end, which may be cut.
    return truncate(note, NOTE_BYTES_MAX - len(suffix)) + suffix
