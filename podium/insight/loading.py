"""Loads a cluster from dumped objects. Objects that cannot be read are named and left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from podium.cluster import CacheError
from podium.config import DEFAULT_SCHEDULER_NAME, KubeSchedulerConfiguration
from podium.engine.asked_pods import pod_named as pod_with_unique_name
from podium.engine.cluster_objects import read_object, unbound
from podium.engine.derivation.admission import Admission
from podium.engine.derivation.control_objects import mapping_at
from podium.engine.derivation.workload_kinds import has_template, templates_in
from podium.engine.errors import ClusterError, ManifestError
from podium.engine.files import LocatedManifest
from podium.engine.manifests import resource_of
from podium.engine.store import LATER_THAN_ALL_S, ObjectStore
from podium.framework.contract.plugin import Plugin
from podium.insight.cluster import Cluster
from podium.lib.nearest import nearest
from podium.objects.core import Node, Pod
from podium.objects.errors import FieldError
from podium.objects.requests import node_allocatable
from podium.objects.resource_types import NODES, PODS, KubeObject, ResourceType
from podium.objects.times import time_or_none
from podium.objects.unreadable import is_partial, unread_field


@dataclass(frozen=True)
class LoadResult:
    """A cluster read from a dump, and the objects and kinds that the dump lacks.

    Attributes:
        read_errors: for each object that could not be read, where it is and what is wrong.
        any_scheduler: whether the first profile schedules every pod, whatever its `spec.schedulerName`.
        kept_objects: the objects of the kinds that a scheduler does not read and the loader was to keep.
    """

    cluster: Cluster
    admission: Admission
    read_errors: Sequence[str] = ()
    any_scheduler: bool = False
    kept_objects: Sequence[LocatedManifest] = ()
    _missing_for_pods: set[str] = field(default_factory=set)

    def missing_kinds(self) -> Sequence[str]:
        """Return the plural names of the kinds that answers depended on and the dump has no objects of."""
        return sorted({*(resource.plural for resource in self.cluster.store.missing_kinds()), *self._missing_for_pods})

    def time_s(self, *, is_dump: bool) -> float:
        """Return the time of the objects, in seconds since the epoch: of a dump the latest that is in it, if any is."""
        latest_s = time_or_none(self.admission.objects.latest_time) if is_dump else None
        return self.cluster.store.now_s if latest_s is None else latest_s

    def basis(self) -> dict[str, Any]:
        """Return the minor of Kubernetes that decides, the read errors, and the missing kinds, as JSON values."""
        fields: dict[str, Any] = {"decidesAs": self.cluster.release.minor}
        if self.read_errors:
            fields["broken"] = list(self.read_errors)
        return fields | ({"missing": list(kinds)} if (kinds := self.missing_kinds()) else {})

    def read_pod(self, item: LocatedManifest) -> Pod:
        """Return the pod of a manifest, without a node.

        Raises:
            ManifestError: the manifest cannot be read, or the API server would refuse it.
        """
        self.admission.demand_admission(item.manifest)
        self._missing_for_pods.update(self.admission.missing_kinds(item.manifest))
        return unbound(read_object(item, PODS, self.admission))


@dataclass
class Loader:
    """Reads the objects of a cluster.

    Attributes:
        complete_kinds: the kinds of which every object is listed, so that no objects means that none exist.
        any_scheduler: let the first profile schedule every pod, whatever its `spec.schedulerName`.
        may_be_empty: whether a cluster may have no nodes.
        now_s: the time at which questions are answered, in seconds since the epoch.
        kept_kinds: kinds that a scheduler does not read, whose objects are kept as they are.
        read_errors: the errors of the objects that could not be read so far.
    """

    config: KubeSchedulerConfiguration
    classes: Mapping[str, type[Plugin]]
    complete_kinds: Collection[ResourceType[Any]] = ()
    any_scheduler: bool = False
    may_be_empty: bool = False
    now_s: float = LATER_THAN_ALL_S
    kept_kinds: Collection[str] = ()
    read_errors: list[str] = field(default_factory=list)

    def report(self, error: ManifestError) -> None:
        """Record that an object cannot be read."""
        self.read_errors.append(str(error))

    def read(self, items: Sequence[LocatedManifest], extra_pods: Iterable[LocatedManifest] = ()) -> LoadResult:
        """Load a cluster from these objects.

        Args:
            extra_pods: pods that a question is about but that are not in the cluster.

        Raises:
            ClusterError: there is no node, or a profile cannot be built.
        """
        extra_pods = list(extra_pods)
        admission = Admission(item.manifest for item in (*items, *extra_pods))
        store = ObjectStore(self._readable_objects(items, admission), self.complete_kinds)
        store.now_s = self.now_s
        # With no node every answer would be the same, and the file is most likely the wrong one.
        if not store.objects(NODES) and not self.may_be_empty:
            suffix = (
                f"; {len(self.read_errors)} objects could not be read: {self.read_errors[0]}"
                if self.read_errors
                else ""
            )
            raise ManifestError(
                f"no nodes: give the cluster's objects with -f, or the cluster itself with --kubeconfig{suffix}"
            )
        config = self.config
        if self.any_scheduler:
            pods = [read_object(item, PODS, admission) for item in extra_pods]
            names = {pod.spec.scheduler_name: None for pod in (*pods, *store.objects(PODS).values())}
            # In a what-if question, workloads may create pods for schedulers that no existing pod names.
            names |= dict.fromkeys(_schedulers_of_templates(items))
            names = names or {config.profiles[0].scheduler_name: None}
            profiles = tuple(replace(config.profiles[0], scheduler_name=name) for name in names)
            config = replace(config, profiles=profiles)
        try:
            cluster = Cluster(config, store, self.classes, admission=admission)
        except CacheError as error:
            raise ClusterError(str(error)) from error
        kept_objects = [item for item in items if item.manifest.get("kind") in self.kept_kinds]
        return LoadResult(cluster, admission, tuple(self.read_errors), self.any_scheduler, kept_objects)

    def _readable_objects(
        self, items: Iterable[LocatedManifest], admission: Admission
    ) -> Iterable[tuple[ResourceType[Any], Any]]:
        for item in items:
            resource = resource_of(item.manifest)
            if resource is None:
                continue
            try:
                obj = read_object(item, resource, admission)
                _demand_allocatable(obj, item.location)
            except ManifestError as error:
                self.report(error)
                continue
            # A partly readable object may still use resources, so it is kept with the fields that could be read.
            if is_partial(obj):
                problem = unread_field(obj) or "a field cannot be read"
                self.report(ManifestError(f"{item.location}: {resource.kind} {obj.key} counts in part: {problem}"))
            yield resource, obj


def _schedulers_of_templates(items: Iterable[LocatedManifest]) -> Iterator[str]:
    """Yield the scheduler names in the pod templates of workloads."""
    for item in items:
        if has_template(item.manifest):
            for template in templates_in(item.manifest):
                name = mapping_at(template.content, "spec").get("schedulerName") or DEFAULT_SCHEDULER_NAME
                if isinstance(name, str):
                    yield name


def _demand_allocatable(item: KubeObject, location: str) -> None:
    """Refuse a node whose allocatable resources cannot be parsed: no pod could be checked against them."""
    if isinstance(item, Node):
        try:
            node_allocatable(item)
        except FieldError as error:
            raise ManifestError(f"{location}: Node {item.key}: {error}") from None


def pod_named(cluster: Cluster, name: str, namespace: str, *, is_only_there: bool = True) -> Pod:
    """Return the pod of that name; `name` may be `namespace/name`.

    Args:
        is_only_there: search this namespace only; otherwise fall back on the only pod of that name in any namespace.

    Raises:
        ClusterError: no pod has that name, or several in other namespaces have it. The message suggests similar names.
    """
    key = name if "/" in name else f"{namespace}/{name}"
    pods = cluster.store.objects(PODS)
    if (pod := pods.get(key)) is not None:
        return pod
    if not is_only_there and any(pod.metadata.name == name for pod in pods.values()):
        return pod_with_unique_name(name, pods)
    raise ClusterError(f"there is no pod {key}{nearest(key, pods)}")


def node_named(cluster: Cluster, name: str) -> Node:
    """Return the node of that name.

    Raises:
        ClusterError: no node has that name. The message suggests similar names.
    """
    nodes = cluster.store.objects(NODES)
    if (node := nodes.get(name)) is not None:
        return node
    raise ClusterError(f"there is no node {name}{nearest(name, nodes)}")
