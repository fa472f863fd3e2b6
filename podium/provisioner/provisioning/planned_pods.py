"""A pod while it is planned: what it asks for as it stands, and what its volumes ask for.

Source: karpenter pkg/controllers/provisioning/scheduling/scheduler.go (PodData), v1.15.0.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.objects.core import Pod, PodSpec
from podium.objects.requests import Requests
from podium.provisioner.scheduling.amounts import requests_of
from podium.provisioner.scheduling.pod_requirements import pod_requirements, strict_pod_requirements
from podium.provisioner.scheduling.requirements import Requirements
from podium.provisioner.scheduling.volumes import AttachedVolumes


@dataclass(frozen=True, eq=False)
class PlannedPod:
    """A pod with what it asks of a node.

    Attributes:
        requirements: What it requires, the heaviest preference included if preferences count.
        strict_requirements: What it requires, preferences aside.
        volume_alternatives: What its volumes require: any one of these.
        attached: The claims that it attaches to its node.
    """

    pod: Pod
    requests: Requests
    requirements: Requirements
    strict_requirements: Requirements
    volume_alternatives: tuple[Requirements, ...]
    attached: AttachedVolumes

    @property
    def spec(self) -> PodSpec:
        """The pod's spec, as far as it was relaxed."""
        return self.pod.spec

    @classmethod
    def of(
        cls,
        pod: Pod,
        volume_alternatives: tuple[Requirements, ...],
        attached: AttachedVolumes,
        *,
        ignore_preferences: bool,
    ) -> PlannedPod:
        """Return the pod as it stands."""
        # Domains are chosen by the strict ones: a preferred zone must not hide the skew towards the other zones.
        strict = strict_pod_requirements(pod.spec)
        requirements = strict if ignore_preferences else pod_requirements(pod.spec)
        return cls(pod, requests_of(pod), requirements, strict, volume_alternatives, attached)
