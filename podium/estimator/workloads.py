"""Deployments and their replica sets, and how many of a deployment's pods are unschedulable.

Owns finding the replica set that a deployment is rolling out. Never examines why a pod is unschedulable.

Source: karmada pkg/estimator/server/replica/replica.go and pkg/util/lifted/deployment.go, v1.18.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from podium.estimator.errors import EstimateError
from podium.objects.core import Pod
from podium.objects.errors import FieldError
from podium.objects.meta import LabelSelector, NamespacedObject, ObjectMeta, Value
from podium.objects.quantity import QuantityError, parse
from podium.objects.resource_types import ResourceType
from podium.objects.selectors import compile_selector
from podium.objects.times import parse_time

DEPLOYMENT_KIND: Final = "Deployment"
_HASH_LABEL: Final = "pod-template-hash"
_AMOUNTS: Final = frozenset({"requests", "limits", "overhead"})


class TemplatedSpec(Value, frozen=True):
    """A spec with a pod template, which stays unparsed."""

    selector: LabelSelector | None = None
    template: dict[str, Any] = {}


class Deployment(NamespacedObject, frozen=True):
    """A Deployment with its template."""

    spec: TemplatedSpec = TemplatedSpec()


class TemplatedReplicaSet(NamespacedObject, frozen=True, tag="ReplicaSet"):
    """A ReplicaSet with its template."""

    spec: TemplatedSpec = TemplatedSpec()


class TemplatedStatefulSet(NamespacedObject, frozen=True, tag="StatefulSet"):
    """A StatefulSet with its template."""

    spec: TemplatedSpec = TemplatedSpec()


class Job(NamespacedObject, frozen=True):
    """A Job with its template."""

    spec: TemplatedSpec = TemplatedSpec()


DEPLOYMENTS: Final = ResourceType("Deployment", "/apis/apps/v1/deployments", Deployment)
REPLICA_SETS: Final = ResourceType("ReplicaSet", "/apis/apps/v1/replicasets", TemplatedReplicaSet)
STATEFUL_SETS: Final = ResourceType("StatefulSet", "/apis/apps/v1/statefulsets", TemplatedStatefulSet)
JOBS: Final = ResourceType("Job", "/apis/batch/v1/jobs", Job)

Templated: TypeAlias = Deployment | TemplatedReplicaSet | TemplatedStatefulSet | Job
"""The workloads whose pod templates can be read."""


def unschedulable_pods(
    deployment: Deployment,
    replica_sets: Iterable[TemplatedReplicaSet],
    pods: Iterable[Pod],
    threshold_s: float,
    now_s: float,
) -> int:
    """Return how many pods of the deployment's newest template have been unschedulable for longer than the threshold.

    Raises:
        EstimateError: the deployment's selector cannot be read.
    """
    newest = new_replica_set(deployment, replica_sets)
    if newest is None:
        return 0
    try:
        selector = compile_selector(deployment.spec.selector)
    except FieldError as error:
        raise EstimateError(f"deployment {deployment.key}: spec.selector: {error}") from error
    long_ago_s = now_s - max(threshold_s, 0.0)
    return sum(
        pod.metadata.namespace == deployment.metadata.namespace
        and controller_uid(pod.metadata) == newest.metadata.uid
        and selector.matches(pod.metadata.labels)
        and _is_unschedulable_since_before(pod, long_ago_s)
        for pod in pods
    )


def new_replica_set(deployment: Deployment, replica_sets: Iterable[TemplatedReplicaSet]) -> TemplatedReplicaSet | None:
    """Return the oldest replica set controlled by the deployment that has the deployment's template."""
    template = _plain(deployment.spec.template)
    owned_sets = [
        replica_set
        for replica_set in replica_sets
        if replica_set.metadata.namespace == deployment.metadata.namespace
        and controller_uid(replica_set.metadata) == deployment.metadata.uid
        and _plain(replica_set.spec.template) == template
    ]
    return min(
        owned_sets,
        key=lambda replica_set: (replica_set.metadata.creation_timestamp or "", replica_set.metadata.name),
        default=None,
    )


def controller_uid(metadata: ObjectMeta) -> str | None:
    """Return the UID of the object that controls this one."""
    controller = metadata.controller
    return None if controller is None else controller.uid


def _is_unschedulable_since_before(pod: Pod, moment_s: float) -> bool:
    condition = pod.status.condition("PodScheduled")
    if condition is None or condition.status != "False" or condition.reason != "Unschedulable":
        return False
    try:
        return condition.last_transition_time is None or parse_time(condition.last_transition_time) < moment_s
    except ValueError:
        return False


def _plain(content: Any, field: str = "") -> Any:
    """Return a template in the form for comparison: without the hash and empty fields, and with amounts as numbers."""
    if isinstance(content, list):
        return [_plain(item) for item in content]
    if not isinstance(content, dict):
        return content
    if field in _AMOUNTS:
        return {name: _number(raw) for name, raw in content.items()}
    plain = {
        name: _plain(value, name) for name, value in content.items() if not (field == "labels" and name == _HASH_LABEL)
    }
    return {name: value for name, value in plain.items() if value not in (None, {}, [])}


def _number(raw: Any) -> Any:
    try:
        exact = parse(raw)
    except QuantityError:
        return raw
    return exact.unscaled * 10 ** (exact.exponent + 9) if exact.exponent >= -9 else raw
