"""What the replicas of a workload need, read off its pod template as Karmada reads it.

Source: karmada pkg/util/helper/workload.go and pkg/util/resource.go (AddPodTemplateRequest), v1.18.
"""

from __future__ import annotations

from podium.estimator.amounts import upstream_footprint
from podium.estimator.requirements import NodeClaim, ReplicaRequirements
from podium.kube.objects import Pod
from podium.kube.resource_names import CPU
from podium.plugins.node_matching import required_terms


def requirements_of(pod: Pod, priority_class_name: str = "") -> ReplicaRequirements:
    """The requirements of a replica that is like the pod, whose requests have been filled in from its limits.

    Raises:
        FieldError: an amount cannot be read.
    """
    spec = pod.spec
    amounts = upstream_footprint(pod).requests
    return ReplicaRequirements(
        node_claim=NodeClaim(
            hard_node_affinity=required_terms(spec), node_selector=spec.node_selector, tolerations=spec.tolerations
        ),
        resource_request={
            name: f"{amount}m" if name == CPU else str(amount) for name, amount in amounts.items() if amount > 0
        },
        namespace=pod.metadata.namespace,
        priority_class_name=priority_class_name,
    )
