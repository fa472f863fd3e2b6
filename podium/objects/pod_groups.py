"""Pod groups, cut down to what scheduling reads; see `objects.core`."""

from __future__ import annotations

from podium.objects.core import Pod, PodCondition
from podium.objects.meta import Int32, NamespacedObject, Value

POD_GROUP_SCHEDULED = "PodGroupScheduled"
"""The condition that says whether the scheduler has placed the group, if its pods wait one by one."""
POD_GROUP_INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
"""The condition that says whether the scheduler has placed the group, if it is one entry of the queue."""
GANG_TIMEOUT_S = 300.0
"""How long a pod that has a node waits for the others of its gang."""
DISRUPTED_AS_A_WHOLE = "PodGroup"
"""The disruption mode, in version v1alpha2, of groups whose pods are preempted together or not at all."""


class BasicPolicy(Value, frozen=True):
    """The pods of the group are tried together, and each is placed that fits."""


class GangPolicy(Value, frozen=True):
    """At least `min_count` pods of the group are placed, or none."""

    min_count: Int32 = 0


class SchedulingPolicy(Value, frozen=True):
    """The policy by which the group is scheduled: exactly one of the two is set."""

    basic: BasicPolicy | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(Value, frozen=True):
    """All pods of the group go to nodes with one value of this label."""

    key: str = ""


class SchedulingConstraints(Value, frozen=True):
    """The topology within which the group must be placed. The API allows at most one."""

    topology: tuple[TopologyConstraint, ...] = ()


class NoSettings(Value, frozen=True):
    """A choice that has no settings of its own."""


class DisruptionMode(Value, frozen=True):
    """How the group's pods are preempted, since version v1beta1: exactly one of the two is set."""

    single: NoSettings | None = None
    all: NoSettings | None = None


class PodGroupSpec(Value, frozen=True):
    """A group's spec, in version v1alpha2 or v1beta1."""

    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: str | DisruptionMode | None = None
    priority: Int32 | None = None


class PodGroupStatus(Value, frozen=True):
    """A group's status."""

    conditions: tuple[PodCondition, ...] = ()


class PodGroup(NamespacedObject, frozen=True):
    """Pods that are scheduled together: those whose `spec.schedulingGroup` names it."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def min_count(self) -> int | None:
        """The number of pods that a gang needs; None for a group of the basic policy."""
        gang = self.spec.scheduling_policy.gang
        return None if gang is None else gang.min_count

    @property
    def topology_key(self) -> str | None:
        """The label of which all nodes of the group share one value; None without such a constraint."""
        constraints = self.spec.scheduling_constraints
        return constraints.topology[0].key if constraints is not None and constraints.topology else None

    @property
    def priority(self) -> int:
        """The group's own priority, which is not that of its pods; 0 if it has none."""
        return self.spec.priority or 0

    @property
    def is_disrupted_as_a_whole(self) -> bool:
        """The group's pods may only be preempted together."""
        mode = self.spec.disruption_mode
        return mode.all is not None if isinstance(mode, DisruptionMode) else mode == DISRUPTED_AS_A_WHOLE

    def condition(self, kind: str) -> PodCondition | None:
        """Return the condition of that type, if there is one."""
        return next((condition for condition in self.status.conditions if condition.type == kind), None)


def group_of(pod: Pod) -> str | None:
    """Return the key of the pod's group, even if there is no such PodGroup; None for a pod without a group."""
    group = pod.spec.scheduling_group
    return None if group is None else f"{pod.metadata.namespace}/{group.pod_group_name}"
