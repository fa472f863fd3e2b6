"""Derive a workload's replicas from its pod template, and their requirements as Karmada derives them.

Source: karmada pkg/util/helper/workload.go and pkg/util/resource.go (AddPodTemplateRequest), v1.18.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from podium.cluster.matching.node_selectors import required_terms
from podium.estimator.accurate import replica_of
from podium.estimator.amounts import demands, upstream_pod_usage
from podium.estimator.requirements import NodeClaim, ReplicaRequirements
from podium.estimator.workloads import Templated
from podium.objects.affinity import Affinity
from podium.objects.core import Container, Pod, ResourceRequirements
from podium.objects.pod_defaults import with_pod_defaults
from podium.objects.resource_names import CPU
from podium.objects.wire import without_nulls


def requirements_of(pod: Pod, priority_class_name: str = "") -> ReplicaRequirements:
    """Return the requirements of a replica equal to the pod. The pod's requests must be defaulted from its limits.

    Raises:
        FieldError: an amount cannot be read.
    """
    spec = pod.spec
    amounts = upstream_pod_usage(pod).requests
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


def pod_made_by(workload: Templated) -> Pod | None:
    """Return a pod made from the workload's template, or None if the template cannot be read as a pod."""
    template = without_nulls(workload.spec.template)
    labels = (template.get("metadata") or {}).get("labels") or {}
    metadata = {
        "name": workload.metadata.name,
        "namespace": workload.metadata.namespace,
        "uid": f"replica/{workload.metadata.uid}",
        "labels": labels,
    }
    spec = {name: value for name, value in (template.get("spec") or {}).items() if name != "nodeName"}
    try:
        return msgspec.convert({"metadata": metadata, "spec": with_pod_defaults(spec)}, Pod)
    except (msgspec.ValidationError, ValueError):
        return None


def replica_as_asked(template_pod: Pod, requirements: ReplicaRequirements | None) -> Pod:
    """Return the pod with the requested amounts and node claim where these differ from its template.

    They differ while a change of the workload has not reached the member yet. The question is newer then.

    Raises:
        FieldError: an amount cannot be read.
    """
    if requirements is None or _is_asked(template_pod, requirements):
        return template_pod
    spec_requested, spec = replica_of(requirements).spec, template_pod.spec
    affinity = replace(
        spec.affinity or Affinity(),
        node_affinity=spec_requested.affinity.node_affinity if spec_requested.affinity else None,
    )
    spec_changed = replace(
        spec,
        containers=(*spec_requested.containers, *map(_without_amounts, spec.containers)),
        init_containers=tuple(map(_without_amounts, spec.init_containers)),
        resources=None,
        overhead={},
        node_selector=spec_requested.node_selector,
        affinity=affinity,
        tolerations=spec_requested.tolerations,
    )
    return Pod(metadata=template_pod.metadata, spec=spec_changed)


def _is_asked(template_pod: Pod, requirements: ReplicaRequirements) -> bool:
    requirements_known = requirements_of(template_pod)
    if dict(demands(requirements_known.resource_request)) != dict(demands(requirements.resource_request)):
        return False
    return (requirements.node_claim or NodeClaim()) == requirements_known.node_claim


def _without_amounts(container: Container) -> Container:
    return replace(container, resources=ResourceRequirements())
