"""A cluster to ask about, from objects as they were dumped. Objects that cannot be read are named and left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from podium.cluster import CacheError
from podium.config import KubeSchedulerConfiguration
from podium.engine.asked_pods import pod_named as pod_with_unique_name
from podium.engine.cluster import read_object, unbound
from podium.engine.derivation.admission import Admission
from podium.engine.errors import ClusterError, ManifestError
from podium.engine.files import Found
from podium.engine.manifests import resource_of
from podium.engine.store import ObjectStore
from podium.framework.contract.plugin import Plugin
from podium.insight.cluster import Cluster
from podium.lib.nearest import nearest
from podium.objects.core import Node, Pod
from podium.objects.errors import FieldError
from podium.objects.requests import node_allocatable
from podium.objects.resource_types import NODES, PODS, KubeObject, ResourceType
from podium.objects.unreadable import is_partial, unread_field


@dataclass(frozen=True)
class Loaded:
    """A cluster, and what the answers about it do not know.

    Attributes:
        broken: for each object that could not be read, where it is and what is wrong.
        any_scheduler: whether one profile decides for every scheduler that a pod names.
    """

    cluster: Cluster
    admission: Admission
    broken: Sequence[str] = ()
    any_scheduler: bool = False
    _named: set[str] = field(default_factory=set)

    def missed(self) -> Sequence[str]:
        """The plurals of kinds that answers have depended on and of which the cluster has no objects."""
        return sorted({*(resource.plural for resource in self.cluster.store.missed()), *self._named})

    def unknown(self) -> dict[str, Any]:
        """What the answer does not know, as JSON values."""
        more: dict[str, Any] = {"broken": list(self.broken)} if self.broken else {}
        return more | ({"missing": list(missed)} if (missed := self.missed()) else {})

    def read_pod(self, found: Found) -> Pod:
        """The pod of a manifest, unbound.

        Raises:
            ManifestError: it cannot be read, or the API server would refuse it.
        """
        self.admission.demand_admission(found.manifest)
        self._named.update(self.admission.missing_kinds(found.manifest))
        return unbound(read_object(found, PODS, self.admission))


@dataclass
class Loader:
    """Reads the objects of a cluster.

    Attributes:
        whole: the kinds whose list is complete, even if it is empty.
        any_scheduler: let the first profile decide for every scheduler that a pod names.
        may_be_empty: whether a cluster without nodes is one.
        broken: what could not be read so far.
    """

    config: KubeSchedulerConfiguration
    classes: Mapping[str, type[Plugin]]
    whole: Collection[ResourceType[Any]] = ()
    any_scheduler: bool = False
    may_be_empty: bool = False
    broken: list[str] = field(default_factory=list)

    def report(self, error: ManifestError) -> None:
        """Note an object that cannot be read."""
        self.broken.append(str(error))

    def read(self, found: Sequence[Found], asked: Iterable[Found] = ()) -> Loaded:
        """The cluster of these objects.

        Args:
            asked: pods that are asked about beside them.

        Raises:
            ClusterError: there is no node, or a profile cannot be built.
        """
        asked = list(asked)
        admission = Admission(each.manifest for each in (*found, *asked))
        store = ObjectStore(self._readable(found, admission), self.whole)
        if not store.objects(NODES) and not self.may_be_empty:
            broken = f"; {len(self.broken)} objects could not be read: {self.broken[0]}" if self.broken else ""
            raise ManifestError(
                f"no nodes: give the cluster's objects with -f, or the cluster itself with --kubeconfig{broken}"
            )
        config = self.config
        if self.any_scheduler:
            pods = [read_object(each, PODS, admission) for each in asked]
            names = {pod.spec.scheduler_name: None for pod in (*pods, *store.objects(PODS).values())}
            names = names or {config.profiles[0].scheduler_name: None}
            profiles = tuple(replace(config.profiles[0], scheduler_name=name) for name in names)
            config = replace(config, profiles=profiles)
        try:
            cluster = Cluster(config, store, self.classes, admission=admission)
        except CacheError as error:
            raise ClusterError(str(error)) from error
        return Loaded(cluster, admission, tuple(self.broken), self.any_scheduler)

    def _readable(self, found: Iterable[Found], admission: Admission) -> Iterable[tuple[ResourceType[Any], Any]]:
        for each in found:
            resource = resource_of(each.manifest)
            if resource is None:
                continue
            try:
                item = read_object(each, resource, admission)
                _demand_readable(item, each.where)
            except ManifestError as error:
                self.report(error)
                continue
            if is_partial(item):
                what = unread_field(item) or "a field cannot be read"
                self.report(ManifestError(f"{each.where}: {resource.kind} {item.key} counts in part: {what}"))
            yield resource, item


def _demand_readable(item: KubeObject, where: str) -> None:
    """Refuse a node whose resources cannot be parsed: nothing can be said about it."""
    if isinstance(item, Node):
        try:
            node_allocatable(item)
        except FieldError as error:
            raise ManifestError(f"{where}: Node {item.key}: {error}") from None


def pod_named(cluster: Cluster, name: str, namespace: str, *, is_only_there: bool = True) -> Pod:
    """The pod of that name; `name` may be `namespace/name`.

    Args:
        is_only_there: whether a pod of that name in another namespace is not meant, even if it is the only one.

    Raises:
        ClusterError: there is none, or several are elsewhere. The message has the nearest names.
    """
    key = name if "/" in name else f"{namespace}/{name}"
    pods = cluster.store.objects(PODS)
    if (found := pods.get(key)) is not None:
        return found
    if not is_only_there and any(pod.metadata.name == name for pod in pods.values()):
        return pod_with_unique_name(name, pods)
    raise ClusterError(f"there is no pod {key}{nearest(key, pods)}")


def node_named(cluster: Cluster, name: str) -> Node:
    """The node of that name.

    Raises:
        ClusterError: there is none. The message has the nearest names.
    """
    nodes = cluster.store.objects(NODES)
    if (found := nodes.get(name)) is not None:
        return found
    raise ClusterError(f"there is no node {name}{nearest(name, nodes)}")
