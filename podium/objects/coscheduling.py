"""Pod groups of the Coscheduling plugin (`scheduling.x-k8s.io`), cut down to what scheduling reads; see `objects.core`.

They have nothing in common with the groups of `objects.pod_groups` but the name of their kind.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.objects.core import Pod
from podium.objects.meta import Int32, NamespacedObject, ResourceList, Value

GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
"""The label of a pod that names its group."""
MIN_MEMBER = "scheduling.x-k8s.io/min-member"
"""The annotation, or label, of a pod that says how many members its group needs, if there is no PodGroup."""


class CoschedulingSpec(Value, frozen=True):
    """A group's spec."""

    min_member: Int32 = 0
    min_resources: ResourceList | None = None
    schedule_timeout_seconds: Int32 | None = None


class CoschedulingStatus(Value, frozen=True):
    """A group's status."""

    phase: str = ""
    occupied_by: str = ""
    running: Int32 = 0
    schedule_start_time: str | None = None


class CoschedulingPodGroup(NamespacedObject, frozen=True, tag="PodGroup"):
    """Pods that start together: those with the label `scheduling.x-k8s.io/pod-group` of that name."""

    spec: CoschedulingSpec = CoschedulingSpec()
    status: CoschedulingStatus = CoschedulingStatus()


def gang_of(pod: Pod) -> str | None:
    """Return the key of the pod's group, even if there is no such PodGroup; None for a pod without the label."""
    name = pod.metadata.labels.get(GROUP_LABEL)
    return f"{pod.metadata.namespace}/{name}" if name else None


def min_member_text(pod: Pod) -> str | None:
    """Return the pod's own annotation or label for the size of its group, unparsed; None if it has neither."""
    return pod.metadata.annotations.get(MIN_MEMBER) or pod.metadata.labels.get(MIN_MEMBER)


@dataclass(frozen=True, slots=True)
class GangSpec:
    """The requirements of a group, read from its PodGroup or, without one, from its pods.

    Attributes:
        timeout_s: the time that members wait for each other; None if the group does not set one.
        created: the creation timestamp, as in the API.
        problem: the reason why the group's size cannot be parsed; "" if it can.
    """

    min_member: int
    min_resources: ResourceList | None = None
    timeout_s: int | None = None
    created: str | None = None
    problem: str = ""


def spec_of_gang(group: CoschedulingPodGroup | None, pod: Pod) -> GangSpec | None:
    """Return the requirements of the pod's group, from its PodGroup or else the pod; None if neither sets a size."""
    if group is not None:
        spec = group.spec
        creation_timestamp = group.metadata.creation_timestamp
        return GangSpec(spec.min_member, spec.min_resources, spec.schedule_timeout_seconds, creation_timestamp)
    text = min_member_text(pod)
    if text is None:
        return None
    # No more digits than any number of pods has, since longer texts take long to convert.
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        excerpt = text if len(text) <= 40 else f"{text[:40]}…"
        return GangSpec(0, problem=f'pod {pod.key}: {MIN_MEMBER} "{excerpt}" is not a positive number of pods')
    return GangSpec(int(text), created=pod.metadata.creation_timestamp)
