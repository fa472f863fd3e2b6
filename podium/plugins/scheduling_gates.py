"""SchedulingGates: a pod waits until all of its scheduling gates are removed.

Runs at: PreEnqueue.
Verdict: UnschedulableAndUnresolvable with the names of the gates. Nothing is written to the API server for gated pods.
Requeue: the pod's own last gate is removed.
Cost: constant.
Source: kubernetes pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go, v1.36.2.
"""

from __future__ import annotations

from podium.framework.contract.cluster_event import ActionType, EventRegistration, HintScope, QueueingHint, on
from podium.framework.contract.handle import Handle
from podium.framework.contract.plugin import PreEnqueuePlugin
from podium.framework.contract.status import Status, unresolvable
from podium.objects.core import Pod
from podium.objects.resource_types import EventResource
from podium.plugins.shared.hints import is_about, queue_if


class SchedulingGates(PreEnqueuePlugin):
    """Keeps pods with scheduling gates out of the active queue."""

    def __init__(self, args: object, handle: Handle) -> None:
        del args, handle

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Return success for a pod without gates."""
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        names = " ".join(gate.name for gate in gates)
        return unresolvable(f"waiting for scheduling gates: [{names}]")

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        """Updates that remove the last gate of a pod."""
        eliminated = ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        return (on(EventResource.POD, eliminated, hint=self.after_gates_eliminated, scope=HintScope.SPEC),)

    def after_gates_eliminated(self, pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        """Queue if the event is about the pod itself."""
        del old
        return queue_if(is_about(pod, new))
