"""The pods that DaemonSets will run on a node, and the resources that they take.

Decides which DaemonSets run on which nodes. As upstream, a whole plan shares one copy of each DaemonSet's pod, and
every attempt to place it changes the copy: it gains a toleration of PreferNoSchedule taints, and loses the alternatives
of its node affinity that did not fit.

Source: karpenter pkg/controllers/provisioning/provisioner.go and scheduling/scheduler.go, v1.15.0.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from podium.objects.affinity import Affinity, NodeAffinity
from podium.objects.core import Container, Pod, PodSpec
from podium.provisioner.apis.objects import ClusterObjects, DaemonSet
from podium.provisioner.cloudprovider.instance_type_filter import DaemonGroup
from podium.provisioner.cloudprovider.instance_types import InstanceType
from podium.provisioner.provisioning.pod_queue import created_s
from podium.provisioner.provisioning.relaxation import tolerating_preferences, without_first_alternative
from podium.provisioner.provisioning.templates import Template
from podium.provisioner.scheduling.amounts import requests_of_all
from podium.provisioner.scheduling.host_ports import HostPort, host_ports
from podium.provisioner.scheduling.pod_requirements import strict_pod_requirements
from podium.provisioner.scheduling.requirements import Requirements
from podium.provisioner.scheduling.taints import untolerated_taints
from podium.provisioner.state.state_node import StateNode

_replace = msgspec.structs.replace


class Daemons:
    """The pods of all DaemonSets, for one plan.

    Templates must be tried in their order, and before nodes, because every attempt changes the pods.

    Args:
        well_known: the labels that a template need not define.
    """

    def __init__(self, objects: ClusterObjects, well_known: frozenset[str]) -> None:
        self._well_known = well_known
        pods = (_daemon_pod(daemon_set, objects.pods) for daemon_set in objects.daemon_sets)
        self._pods = [pod for pod in pods if not uses_devices(pod.spec)]

    def groups_of(self, template: Template) -> tuple[DaemonGroup, ...]:
        """Group the template's instance types by the DaemonSets that run on them."""
        if not self._pods:
            return (DaemonGroup(template.instance_types),)
        types: dict[tuple[str, ...], list[InstanceType]] = {}
        pods: dict[tuple[str, ...], list[Pod]] = {}
        for instance_type in template.instance_types:
            indices = [index for index in range(len(self._pods)) if self._runs_on(index, template, instance_type)]
            pod_keys = tuple(sorted(self._pods[index].key for index in indices))
            types.setdefault(pod_keys, []).append(instance_type)
            pods.setdefault(pod_keys, [self._pods[index] for index in indices])
        return tuple(_daemon_group(types[key], pods[key]) for key in sorted(types, key=",".join))

    def on_node(self, node: StateNode) -> list[Pod]:
        """Return the pods that DaemonSets run, or will run, on the node."""
        labels = Requirements.of_labels(node.labels)
        return [
            pod
            for pod in self._pods
            if not untolerated_taints(node.taints, pod.spec.tolerations)
            and labels.is_compatible(strict_pod_requirements(pod.spec))
        ]

    def _runs_on(self, index: int, template: Template, instance_type: InstanceType) -> bool:
        # The shared copy is changed even where the daemon does not run in the end; recorded answers depend on it.
        pod = self._replace_spec(index, tolerating_preferences(self._pods[index].spec))
        if untolerated_taints(template.taints, pod.spec.tolerations):
            return False
        while True:
            requirements = strict_pod_requirements(pod.spec)
            # Labels that instance types do not define, such as custom ones, are no obstacle.
            if template.requirements.is_compatible(
                requirements, self._well_known
            ) and instance_type.requirements.intersects(requirements):
                return True
            spec = without_first_alternative(pod.spec)
            if spec is None:
                return False
            pod = self._replace_spec(index, spec)

    def _replace_spec(self, index: int, spec: PodSpec) -> Pod:
        pod = self._pods[index]
        if spec is not pod.spec:
            pod = self._pods[index] = _replace(pod, spec=spec)
        return pod


def uses_devices(spec: PodSpec) -> bool:
    """Return True if the pod has resource claims."""
    return bool(spec.resource_claims) or any(
        container.resources.claims for container in (*spec.init_containers, *spec.containers)
    )


def _daemon_group(instance_types: list[InstanceType], pods: list[Pod]) -> DaemonGroup:
    ports: list[HostPort] = [port for pod in pods for port in host_ports(pod.spec)]
    return DaemonGroup(tuple(instance_types), requests_of_all(pods) if pods else {}, tuple(ports))


def _daemon_pod(daemon_set: DaemonSet, pods: Iterable[Pod]) -> Pod:
    """Return the newest pod of the DaemonSet, or a pod built from its template, with the template's node affinity."""
    newest: Pod | None = None
    for pod in pods:
        if _is_controlled_by(pod, daemon_set) and (newest is None or created_s(pod) > created_s(newest)):
            newest = pod
    spec = daemon_set.spec.template.spec
    if newest is None:
        newest = Pod(metadata=daemon_set.metadata, spec=_spec_with_default_requests(spec))
    # Only this part of a running pod is not what the template says: the DaemonSet controller replaced it by the node's
    # name.
    node_selector = spec.affinity and spec.affinity.node_affinity and spec.affinity.node_affinity.required
    if not node_selector:
        return newest
    affinity = newest.spec.affinity or Affinity()
    node_affinity = _replace(affinity.node_affinity or NodeAffinity(), required=node_selector)
    return _replace(newest, spec=_replace(newest.spec, affinity=_replace(affinity, node_affinity=node_affinity)))


def _is_controlled_by(pod: Pod, daemon_set: DaemonSet) -> bool:
    return pod.metadata.namespace == daemon_set.metadata.namespace and any(
        owner.controller and owner.uid == daemon_set.metadata.uid for owner in pod.metadata.owner_references
    )


def _spec_with_default_requests(spec: PodSpec) -> PodSpec:
    """Return the spec with the API server's defaults: a limit without a request is the request too."""
    return _replace(
        spec,
        containers=tuple(_with_default_requests(container) for container in spec.containers),
        init_containers=tuple(_with_default_requests(container) for container in spec.init_containers),
    )


def _with_default_requests(container: Container) -> Container:
    resources = container.resources
    return _replace(container, resources=_replace(resources, requests={**resources.limits, **resources.requests}))
