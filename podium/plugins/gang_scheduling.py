"""GangScheduling: the pods of a gang start together, or none of them does.

Runs at: PreEnqueue, PlacementFeasible, Permit.
Verdict: PreEnqueue: UnschedulableAndUnresolvable until the PodGroup exists and as many of its pods as the gang needs.
PlacementFeasible: Wait until as many of them have a place, Unschedulable once they cannot. Permit: Wait until as many
of them have a node; Error if the PodGroup is gone.
Requeue: a pod of the same group is added, or the PodGroup; the gang needs fewer pods than before.
Cost: constant; the pod that completes the gang costs one step for each pod of the group.
Source: kubernetes pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, v1.36.2 and v1.37.2.
Differs: a pod that is added requeues its group only if it completes it. Upstream asks every member of the group again
for each of them, and activates the pods that are being tried with a pod that waits, with the same result. With
`thoroughSearchSteps` a gang that does not fit in upstream's way, pod by pod, is placed if there is any placement, on
other nodes or with other devices: kubernetes issue 138765.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import msgspec

from podium.framework import contract as fwk
from podium.objects.core import Pod
from podium.objects.pod_groups import GANG_TIMEOUT_S, PodGroup, group_of
from podium.objects.resource_types import POD_GROUPS
from podium.plugins.shared.hints import queue_if

_TOO_FEW_KNOWN: Final = fwk.unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")
_TOO_FEW_PLACED: Final = fwk.Status(fwk.Code.WAIT, ("waiting for minCount pods from a gang to be scheduled",))


@dataclass(frozen=True)
class GangSchedulingArgs:
    """The plugin's args; upstream has none.

    Attributes:
        thorough_search_steps: how many places to try for the pods of a gang that did not fit in upstream's way; 0
            means none.
    """

    thorough_search_steps: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] = 0


class GangScheduling(fwk.PreEnqueuePlugin, fwk.PermitPlugin):
    """Keeps gangs together.

    Raises:
        GateNeededError: pods are not scheduled in groups.
    """

    Args = GangSchedulingArgs

    def __init__(self, args: object, handle: fwk.Handle) -> None:
        self.search_steps_max = args.thorough_search_steps if isinstance(args, GangSchedulingArgs) else 0
        if handle.pod_groups is None:
            raise fwk.GateNeededError(self.name, "GenericWorkload")
        self._states = handle.pod_groups
        self._has_entries = handle.release.queue.has_group_entries
        self._groups = handle.lister(POD_GROUPS)
        self._waiting_pods = handle.waiting_pods

    def pre_enqueue(self, pod: Pod) -> fwk.Status | None:
        """Return success once the gang may be complete, and for a pod that is in no gang."""
        key = group_of(pod)
        if key is None:
            return None
        group = self._groups.get(key)
        if group is None:
            name = key.partition("/")[2]
            return fwk.unresolvable(f'waiting for pods\'s pod group "{name}" to appear in scheduling queue')
        if group.min_count is None:
            return None
        state = self._states.state(key)
        if state is None:
            return _not_known(key)
        return _TOO_FEW_KNOWN if len(state) < group.min_count else None

    def placement_feasible(self, group: PodGroup, scheduled_count: int, left_count: int) -> fwk.Status | None:
        """Return success if enough pods of the group have a place, Wait if they may yet, else Unschedulable.

        Args:
            scheduled_count: the pods that have a node, or a place in the simulation.
            left_count: the pods that are not tried yet.
        """
        min_count = group.min_count or 1
        if scheduled_count >= min_count:
            return None
        counts = f"{scheduled_count} scheduled, {left_count} remaining"
        if scheduled_count + left_count < min_count:
            return fwk.unschedulable(f"minCount ({min_count}) cannot be satisfied: {counts}")
        return fwk.Status(fwk.Code.WAIT, (f"minCount ({min_count}) is not yet satisfied: {counts}",))

    def permit(self, state: fwk.CycleState, pod: Pod, node_name: str) -> tuple[fwk.Status | None, float]:
        """Return Wait until the gang has its nodes; the pod that completes it lets the others go."""
        key = group_of(pod)
        if key is None:
            return None, 0.0
        group = self._groups.get(key)
        if group is None:
            name = key.partition("/")[2]
            problem = f'podgroup.scheduling.k8s.io "{name}" not found'
            return fwk.error_status(f"failed to get podGroup {key}: {problem}"), 0.0
        if group.min_count is None:
            return None, 0.0
        simulation = state.find(fwk.SimulatedGroup)
        members = simulation.state if simulation is not None else None
        members = members or self._states.state(key)
        if members is None:
            return _not_known(key), 0.0
        if members.scheduled_count < group.min_count:
            # Pods that are being tried with this one wait for nothing: in a simulation, or as one entry of the queue.
            if not self._has_entries and (simulation is None or simulation.state is None):
                self._states.activate(list(members.unscheduled.values()))
            return _TOO_FEW_PLACED, GANG_TIMEOUT_S
        for uid in members.assumed:
            waiting_pod = self._waiting_pods.get(uid)
            if waiting_pod is not None:
                waiting_pod.allow(self.name)
        return None, 0.0

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register added pods and PodGroups, which may complete a gang. The group of a pod never changes."""
        resources, spec = fwk.EventResource, fwk.HintScope.SPEC
        add, update = fwk.ActionType.ADD, fwk.ActionType.UPDATE
        pods = [resources.UNSCHEDULED_POD, resources.ASSIGNED_POD] if self._has_entries else [resources.POD]
        registrations = [fwk.on(resource, add, hint=self.after_pod_add, scope=spec) for resource in pods]
        registrations.append(fwk.on(resources.POD_GROUP, add, hint=self.after_pod_group_add, scope=spec))
        if self._has_entries:
            registrations.append(fwk.on(resources.POD_GROUP, update, hint=self.after_pod_group_update, scope=spec))
        return tuple(registrations)

    def after_pod_add(self, pod: Pod, old: Pod | None, new: Pod | None) -> fwk.QueueingHint:
        """Queue if the added pod is of the same group, and the group is complete with it."""
        key = group_of(pod)
        if key is None or new is None or group_of(new) != key:
            return fwk.QueueingHint.SKIP
        group, state = self._groups.get(key), self._states.state(key)
        return queue_if(state is None or (group is not None and len(state) >= (group.min_count or 0)))

    def after_pod_group_add(self, pod: Pod, old: PodGroup | None, new: PodGroup | None) -> fwk.QueueingHint:
        """Queue if the added group is the pod's."""
        return queue_if(new is not None and group_of(pod) == new.key)

    def after_pod_group_update(self, pod: Pod, old: PodGroup | None, new: PodGroup | None) -> fwk.QueueingHint:
        """Queue if the pod's gang needs fewer pods than before."""
        if old is None or new is None or group_of(pod) != new.key:
            return fwk.QueueingHint.SKIP
        return queue_if(new.min_count is not None and old.min_count is not None and new.min_count < old.min_count)


def _not_known(key: str) -> fwk.Status:
    return fwk.error_status(f"pod group state not found for pod group {key}")
