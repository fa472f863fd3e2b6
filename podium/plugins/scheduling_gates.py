"""SchedulingGates: a pod waits until all of its scheduling gates are removed.

Runs at: PreEnqueue.
Verdict: UnschedulableAndUnresolvable with the names of the gates. Nothing is written to the API server for gated pods.
Requeue: the pod's own last gate is removed.
Cost: constant.
Source: kubernetes pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go, v1.36.2.
"""

from __future__ import annotations

from podium.framework import contract as fwk
from podium.objects.core import Pod
from podium.plugins.shared.hints import is_about, queue_if


class SchedulingGates(fwk.PreEnqueuePlugin):
    """Keeps pods with scheduling gates out of the active queue."""

    def pre_enqueue(self, pod: Pod) -> fwk.Status | None:
        """Return success for a pod without gates."""
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        names = " ".join(gate.name for gate in gates)
        return fwk.unresolvable(f"waiting for scheduling gates: [{names}]")

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register updates that remove the last gate of a pod."""
        eliminated = fwk.ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        own_pod = self.handle.release.events.own_pod
        return (fwk.on(own_pod, eliminated, hint=self.after_gates_eliminated, scope=fwk.HintScope.SPEC),)

    def after_gates_eliminated(self, pod: Pod, old: Pod | None, new: Pod | None) -> fwk.QueueingHint:
        """Queue if the event is about the pod itself."""
        return queue_if(is_about(pod, new))
