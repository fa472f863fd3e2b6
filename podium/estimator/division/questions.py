"""Questions about a division, from the objects in files: a binding, or a workload with its policy, and clusters.

Never reads a file: it takes what `engine.files` has found in one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from podium.engine.derivation.control_objects import namespace_of
from podium.engine.derivation.workload_kinds import demand_template
from podium.engine.files import LocatedManifest
from podium.engine.misspelt_fields import misspelt_fields
from podium.estimator.cluster_objects import ApiEnablement, ApiResource, Cluster
from podium.estimator.division.bindings import (
    BindingResource,
    BindingSpec,
    BindingStatus,
    Placement,
    ResourceBinding,
)
from podium.estimator.division.placements import admitted_placement
from podium.estimator.errors import EstimateError
from podium.estimator.manifests import workload_in
from podium.estimator.template import requirements_of
from podium.objects.errors import FieldError
from podium.objects.meta import Value
from podium.objects.times import parse_time

GATES: Final[Mapping[str, str]] = {
    "WorkloadAffinity": "workload_affinity",
    "MultiplePodTemplatesScheduling": "multiple_pod_templates",
}
"""The feature gates of Karmada's scheduler that influence a division, and the options that they switch on."""

_BINDINGS: Final = ("ResourceBinding", "ClusterResourceBinding")
_POLICIES: Final = ("PropagationPolicy", "ClusterPropagationPolicy")

_T = TypeVar("_T", bound=Value)


class _PolicySpec(Value, frozen=True):
    placement: Placement = Placement()


class _Policy(Value, frozen=True):
    spec: _PolicySpec = _PolicySpec()


class _Binding(Value, frozen=True):
    spec: BindingSpec = BindingSpec()
    status: BindingStatus = BindingStatus()


def binding_in(sources: Sequence[LocatedManifest], name: str) -> tuple[BindingSpec, BindingStatus]:
    """Return the binding among the objects of a file, or the one that Karmada makes of a workload and its policy.

    Args:
        name: what to call the file.

    Raises:
        EstimateError, ManifestError: there is not exactly one, or it cannot be read or scheduled.
    """
    bindings = _of_kinds(sources, _BINDINGS)
    if len(bindings) > 1:
        raise EstimateError(f"{name}: expected one binding, found {len(bindings)}")
    if bindings:
        binding = _convert(bindings[0], _Binding)
        spec, status, location = binding.spec, binding.status, bindings[0].location
    else:
        spec, status, location = _binding_of_workload(sources, name), BindingStatus(), name
    try:
        demand_readable(spec, status)
        return replace(spec, placement=admitted_placement(spec.rules)), status
    except EstimateError as error:
        raise EstimateError(f"{location}: {error}") from error


def _binding_of_workload(sources: Sequence[LocatedManifest], name: str) -> BindingSpec:
    policies = _of_kinds(sources, _POLICIES)
    if len(policies) != 1:
        raise EstimateError(f"{name}: expected a binding, or a workload with one PropagationPolicy")
    workload_sources = [source for source in sources if source is not policies[0]]
    source, template = demand_template(workload_sources, name)
    workload = workload_in(workload_sources, name)
    try:
        requirements = requirements_of(workload.pod, workload.priority_class_name)
    except FieldError as error:
        raise EstimateError(f"{source.location}: {error}") from error
    metadata = source.manifest.get("metadata") or {}
    resource = BindingResource(
        api_version=str(source.manifest.get("apiVersion") or ""),
        kind=str(source.manifest.get("kind") or ""),
        namespace=namespace_of(source.manifest),
        name=str(metadata.get("name") or ""),
        uid=str(metadata.get("uid") or ""),
    )
    # The API server's default.
    replicas = 1 if template.replicas is None else template.replicas
    try:
        spec = msgspec.convert({"replicas": replicas}, BindingSpec)
    except msgspec.ValidationError as error:
        raise EstimateError(f"{source.location}: spec.{template.count_field}: {error}") from error
    placement = _convert(policies[0], _Policy).spec.placement
    return replace(spec, resource=resource, replica_requirements=requirements, placement=placement)


def bindings_in(sources: Iterable[LocatedManifest]) -> list[ResourceBinding]:
    """Return the ResourceBindings. Raises: EstimateError."""
    return [_convert(source, ResourceBinding) for source in _of_kinds(sources, ("ResourceBinding",))]


def bare_cluster(name: str, resource: BindingResource) -> Cluster:
    """Return a cluster of which only the name is known, and that it serves the workload's kind."""
    enablement = ApiEnablement(group_version=resource.api_version, resources=(ApiResource(kind=resource.kind),))
    cluster = msgspec.convert({"metadata": {"name": name}}, Cluster)
    return replace(cluster, status=replace(cluster.status, api_enablements=(enablement,)))


def _of_kinds(sources: Iterable[LocatedManifest], kinds: Sequence[str]) -> list[LocatedManifest]:
    """Return the objects of Karmada's kinds."""
    return [
        source
        for source in sources
        if source.manifest.get("kind") in kinds and "karmada.io/" in str(source.manifest.get("apiVersion"))
    ]


def _convert(source: LocatedManifest, kind: type[_T]) -> _T:
    for error in misspelt_fields(source.manifest, kind):
        raise EstimateError(f"{source.location}: {error}")
    try:
        return msgspec.convert(source.manifest, kind)
    except msgspec.ValidationError as error:
        raise EstimateError(f"{source.location}: {error}") from error


def demand_unique(names: Sequence[str]) -> None:
    """Refuse the same cluster twice. Raises: EstimateError."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise EstimateError(f"cluster {twice[0]} is given twice")


def demand_readable(spec: BindingSpec, status: BindingStatus) -> None:
    """Refuse a binding that cannot be scheduled at all. Raises: EstimateError."""
    if spec.placement is None:
        raise EstimateError("spec.placement: Required value")
    times = {"spec.rescheduleTriggeredAt": spec.reschedule_triggered_at}
    for path, text in {**times, "status.lastScheduledTime": status.last_scheduled_time}.items():
        try:
            if text is not None:
                parse_time(text)
        except ValueError as error:
            raise EstimateError(f"{path}: {error}") from error
