"""The spread constraints that pods without any get from the cluster's configuration.

Owns which selector such a constraint has: that of the pod's services and of its controller.

Source: karpenter pkg/controllers/provisioning/scheduling/defaultconstraints.go, v1.15.0.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from podium.objects.core import Pod, TopologySpreadConstraint
from podium.objects.meta import LabelSelector, LabelSelectorRequirement, OwnerReference
from podium.objects.workloads import ReplicaSet, StatefulSet
from podium.provisioner.apis.objects import ClusterObjects


class DefaultSpreads:
    """The default constraints of a cluster.

    Args:
        constraints: those of the configuration, which have no selector.
    """

    def __init__(self, objects: ClusterObjects, constraints: Sequence[TopologySpreadConstraint]) -> None:
        self._objects = objects
        self._constraints = tuple(constraints)

    def with_defaults(self, pod: Pod) -> Pod:
        """Return the pod with the default constraints, if it has none of its own and a selector can be found."""
        # As the plugin PodTopologySpread: constraints of its own switch off the cluster's, even if they are on other
        # keys.
        if not self._constraints or pod.spec.topology_spread_constraints:
            return pod
        selector = self._selector(pod)
        if selector is None:
            return pod
        constraints = tuple(
            msgspec.structs.replace(constraint, label_selector=selector) for constraint in self._constraints
        )
        return msgspec.structs.replace(
            pod, spec=msgspec.structs.replace(pod.spec, topology_spread_constraints=constraints)
        )

    def _selector(self, pod: Pod) -> LabelSelector | None:
        meta = pod.metadata
        labels: dict[str, str] = {}
        for service in self._objects.services:
            selector = service.spec.selector
            if service.metadata.namespace == meta.namespace and selector.items() <= meta.labels.items():
                labels.update(selector)
        expressions: list[LabelSelectorRequirement] = []
        owner = meta.controller
        if owner is not None:
            labels.update(self._controller_labels(owner, meta.namespace))
            expressions = self._controller_expressions(owner, meta.namespace)
        # An empty selector would match every pod of the namespace.
        if not labels and not expressions:
            return None
        return LabelSelector(match_labels=labels, match_expressions=tuple(expressions))

    def _controller_labels(self, owner: OwnerReference, namespace: str) -> dict[str, str]:
        if (owner.api_version, owner.kind) != ("v1", "ReplicationController"):
            return {}
        for controller in self._objects.replication_controllers:
            if (controller.metadata.namespace, controller.metadata.name) == (namespace, owner.name):
                return controller.spec.selector
        return {}

    def _controller_expressions(self, owner: OwnerReference, namespace: str) -> list[LabelSelectorRequirement]:
        controllers: Sequence[ReplicaSet | StatefulSet] = ()
        if owner.api_version == "apps/v1" and owner.kind == "ReplicaSet":
            controllers = self._objects.replica_sets
        elif owner.api_version == "apps/v1" and owner.kind == "StatefulSet":
            controllers = self._objects.stateful_sets
        for controller in controllers:
            selector = controller.spec.selector
            if (controller.metadata.namespace, controller.metadata.name) == (
                namespace,
                owner.name,
            ) and selector is not None:
                labels = [
                    LabelSelectorRequirement(key=key, operator="In", values=(value,))
                    for key, value in selector.match_labels.items()
                ]
                return [*labels, *selector.match_expressions]
        return []
