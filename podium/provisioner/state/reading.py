"""Reads the objects of a cluster from parsed JSON.

Owns which kinds are read, and the errors about them. A value that planning could not use is found here, before anything
is planned, so that the error names the object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from podium.objects.affinity import NodeSelectorRequirement
from podium.objects.core import Pod, PodSpec
from podium.objects.errors import FieldError, field_and_detail
from podium.objects.meta import LabelSelector
from podium.objects.requests import pod_requests_with_status, whole_amounts
from podium.objects.selectors import compile_selector
from podium.objects.storage import CSINode, PersistentVolumeClaim, StorageClass
from podium.objects.times import parse_time
from podium.objects.workloads import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet
from podium.provisioner.apis.objects import (
    CONSOLIDATION_POLICIES,
    Budget,
    ClusterObjects,
    DaemonSet,
    NodeClaim,
    NodeClaimStatus,
    NodeOverlay,
    NodePool,
    ProvidedNode,
    Volume,
)
from podium.provisioner.scheduling.requirements import Requirement
from podium.provisioner.state.versions import current_form

Take: TypeAlias = Callable[[Any], tuple[Any | None, FieldError | None]]
"""Returns what counts of an object, None if nothing does, and its fault, None if it has none."""

OnFault: TypeAlias = Callable[[FieldError, str, Any | None], None]
"""Receives a fault with where it is, the kind of the object, and what still counts of it."""

KINDS: Final[Mapping[str, tuple[str, type[Any]]]] = {
    "NodePool": ("node_pools", NodePool),
    "NodeClaim": ("node_claims", NodeClaim),
    "Node": ("nodes", ProvidedNode),
    "Pod": ("pods", Pod),
    "DaemonSet": ("daemon_sets", DaemonSet),
    "PodDisruptionBudget": ("budgets", Budget),
    "Namespace": ("namespaces", Namespace),
    "Service": ("services", Service),
    "ReplicationController": ("replication_controllers", ReplicationController),
    "ReplicaSet": ("replica_sets", ReplicaSet),
    "StatefulSet": ("stateful_sets", StatefulSet),
    "PersistentVolumeClaim": ("claims", PersistentVolumeClaim),
    "PersistentVolume": ("volumes", Volume),
    "StorageClass": ("storage_classes", StorageClass),
    "CSINode": ("csi_nodes", CSINode),
    "NodeOverlay": ("overlays", NodeOverlay),
}
"""By kind: the field of `ClusterObjects`, and the type."""


def read_objects(documents: object, path: str = "objects") -> ClusterObjects:
    """Read objects from a list in parsed JSON; those of other kinds are ignored.

    Args:
        path: what to call the list in errors.

    Raises:
        FieldError: an object has a field of another type than the API gives it, or a value that has no meaning.
    """
    if not isinstance(documents, Sequence) or isinstance(documents, str | bytes):
        raise FieldError(path, "is not a list")
    return read_named_objects((document, f"{path}[{index}]", ".") for index, document in enumerate(documents))


def read_named_objects(
    documents: Iterable[tuple[object, str, str]], take: Take | None = None, on_fault: OnFault | None = None
) -> ClusterObjects:
    """Read objects from parsed JSON; those of other kinds are ignored.

    Args:
        documents: each with what to call it in errors, and what stands between that and the path of a field.
        take: returns what counts of an object, None if nothing does, and its fault; by default `check_object` decides.
        on_fault: receives an object with a fault, and where it is. Without it a fault is an error.

    Raises:
        FieldError: an object has a field of another type than the API gives it, or a value that has no meaning.
    """
    lists: dict[str, list[Any]] = {name: [] for name, _ in KINDS.values()}
    closed_pools: dict[str, str] = {}
    for document, path, separator in documents:
        if not isinstance(document, Mapping):
            raise FieldError(path, "is not an object with named fields")
        kind_entry = KINDS.get(str(document.get("kind")))
        if kind_entry is None:
            continue
        name, kind = kind_entry
        item, fault = _read(document, kind, take or _take)
        if fault is not None:
            error = FieldError(f"{path}{separator}{fault.path}" if fault.path else path, fault.detail)
            # A part that cannot be read of anything but a NodePool may be any part of it.
            if on_fault is None or (item is None and kind is not NodePool and not _is_typed(document, kind)):
                raise error
            on_fault(error, kind.__name__, item)
        if item is not None:
            lists[name].append(item)
        elif kind is NodePool:
            closed_pools[_name_of(document)] = str(fault)
    # The order of files, or of an API server's answer, must not decide where a plan is indifferent.
    fields: dict[str, Any] = {
        name: tuple(sorted(items, key=lambda item: (item.metadata.namespace, item.metadata.name)))
        for name, items in lists.items()
    }
    return ClusterObjects(**fields, closed_pools=closed_pools)


def _read(document: Mapping[Any, Any], kind: type[Any], take: Take) -> tuple[Any | None, FieldError | None]:
    try:
        return take(msgspec.convert(current_form(document), kind))
    except FieldError as error:
        return None, error
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        return None, FieldError(*field_and_detail(str(error)))


def _take(item: Any) -> tuple[Any | None, FieldError | None]:
    try:
        check_object(item)
    except FieldError as error:
        return None, error
    return item, None


def _is_typed(document: Mapping[Any, Any], kind: type[Any]) -> bool:
    try:
        msgspec.convert(document, kind)
    except (msgspec.ValidationError, UnicodeEncodeError):
        return False
    return True


def _name_of(document: Mapping[Any, Any]) -> str:
    metadata = document.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, Mapping) else ""


def time_of(text: object, path: str) -> float:
    """Return a timestamp in seconds since the epoch.

    Raises:
        FieldError: it is not a timestamp.
    """
    try:
        return parse_time(str(text))
    except ValueError as error:
        raise FieldError(path, str(error)) from error


# ---------------------------------------------------------------- meaning

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def check_object(item: Any) -> None:
    """Refuse values that planning could not use.

    Raises:
        FieldError: a quantity, a time, an operator or a selector has no meaning.
    """
    metadata = item.metadata
    _check_time(metadata.creation_timestamp, "metadata.creationTimestamp")
    _check_time(metadata.deletion_timestamp, "metadata.deletionTimestamp")
    if isinstance(item, Pod):
        _check_time(item.status.start_time, "status.startTime")
        # Called for its error: requests that cannot be read are found before the plan.
        pod_requests_with_status(item)
        # What is wrong with the node affinity that a waiting pod requires is part of the plan.
        _check_affinity(item.spec, "spec", is_waiting=not item.node_name)
    elif isinstance(item, DaemonSet):
        _check_template(item.spec.template.spec, "spec.template.spec")
    elif isinstance(item, ProvidedNode | NodeClaim):
        whole_amounts(item.status.capacity, "status.capacity")
        whole_amounts(item.status.allocatable, "status.allocatable")
        if isinstance(item, NodeClaim):
            _check_times(item.status)
    elif isinstance(item, NodePool):
        _check_pool(item)
    elif isinstance(item, Budget):
        check_selector(item.spec.selector, "spec.selector")
    elif isinstance(item, Volume):
        _check_volume(item)


def _check_times(status: NodeClaimStatus) -> None:
    _check_time(status.last_pod_event_time, "status.lastPodEventTime")
    for index, condition in enumerate(status.conditions):
        _check_time(condition.last_transition_time, f"status.conditions[{index}].lastTransitionTime")


def _check_pool(pool: NodePool) -> None:
    whole_amounts(pool.spec.limits or {}, "spec.limits")
    _ = pool.spec.disruption.consolidate_after_s  # refuses what is no duration
    policy = pool.spec.disruption.consolidation_policy
    if policy not in CONSOLIDATION_POLICIES:
        raise FieldError(
            "spec.disruption.consolidationPolicy", f'"{policy}" is not one of {", ".join(CONSOLIDATION_POLICIES)}'
        )
    for index, requirement in enumerate(pool.spec.template.spec.requirements):
        path = f"spec.template.spec.requirements[{index}]"
        if not requirement.key:
            raise FieldError(f"{path}.key", "is missing")
        Requirement.of(requirement.key, requirement.operator, requirement.values, path=path)


def _check_template(spec: PodSpec, path: str) -> None:
    _check_affinity(spec, path, is_waiting=False)
    try:
        pod_requests_with_status(Pod(spec=spec))
    except FieldError as error:
        raise FieldError(f"{path.removesuffix('spec')}{error.path}", error.detail) from error
    for kind, containers in (("initContainers", spec.init_containers), ("containers", spec.containers)):
        for index, container in enumerate(containers):
            # Limits stand in for requests that the template lacks.
            whole_amounts(container.resources.limits, f"{path}.{kind}[{index}].resources.limits")


def _check_volume(volume: Volume) -> None:
    affinity = volume.spec.node_affinity
    if affinity is not None and affinity.required is not None:
        for index, term in enumerate(affinity.required.node_selector_terms):
            check_expressions(
                term.match_expressions, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}].matchExpressions"
            )


def _check_affinity(spec: PodSpec, spec_path: str, *, is_waiting: bool) -> None:
    if spec.affinity is None:
        return
    nodes = spec.affinity.node_affinity
    if nodes is not None:
        path = f"{spec_path}.affinity.nodeAffinity"
        if nodes.required is not None and not is_waiting:
            for index, term in enumerate(nodes.required.node_selector_terms):
                check_expressions(
                    term.match_expressions, f"{path}.{_REQUIRED}.nodeSelectorTerms[{index}].matchExpressions"
                )
        for index, preference in enumerate(nodes.preferred):
            check_expressions(
                preference.preference.match_expressions, f"{path}.{_PREFERRED}[{index}].preference.matchExpressions"
            )
    for name, pods in (
        ("podAffinity", spec.affinity.pod_affinity),
        ("podAntiAffinity", spec.affinity.pod_anti_affinity),
    ):
        if pods is not None:
            path = f"{spec_path}.affinity.{name}"
            for index, pod_term in enumerate(pods.required):
                check_selector(pod_term.namespace_selector, f"{path}.{_REQUIRED}[{index}].namespaceSelector")
            for index, weighted_term in enumerate(pods.preferred):
                selector_path = f"{path}.{_PREFERRED}[{index}].podAffinityTerm.namespaceSelector"
                check_selector(weighted_term.pod_affinity_term.namespace_selector, selector_path)


def check_expressions(expressions: Sequence[NodeSelectorRequirement], path: str = "") -> None:
    """Refuse requirements on labels that have no meaning. Raises: FieldError."""
    for index, expression in enumerate(expressions):
        Requirement.of(expression.key, expression.operator, expression.values, path=f"{path}[{index}]")


def check_selector(selector: LabelSelector | None, path: str = "") -> None:
    """Refuse a label selector that has no meaning. Raises: FieldError."""
    try:
        compile_selector(selector)
    except FieldError as error:
        raise FieldError(f"{path}.{error.path}", error.detail) from error


def _check_time(text: str | None, path: str) -> None:
    if text:
        time_of(text, path)
