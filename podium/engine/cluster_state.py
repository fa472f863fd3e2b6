"""The state of a cluster in memory: its objects and everything derived from them. Several clusters may share it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from random import Random
from typing import Any, Final
from weakref import WeakSet

from podium.cluster import Cache, pod_usage_in
from podium.cluster.cache import ReportBroken
from podium.cluster.pod_counts import CHANGES_KEPT
from podium.config import KubeSchedulerConfiguration
from podium.config.expansion import ExpandedPlugins
from podium.config.scheduler_names import similar_name
from podium.engine.derivation.admission import Admission
from podium.engine.errors import ClusterError, ManifestError
from podium.engine.evaluation import Evaluation
from podium.engine.files import LocatedManifest
from podium.engine.offline import OfflineHandle
from podium.engine.placing import Engine
from podium.engine.store import ObjectStore
from podium.framework.contract.plugin import Plugin
from podium.framework.profile.observer import Observer
from podium.framework.profile.runtime import Framework, expand
from podium.lib.clock import ManualClock
from podium.objects.core import Node, Pod
from podium.objects.errors import FieldError
from podium.objects.requests import filter_requests
from podium.objects.resource_types import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    RESOURCE_CLAIMS,
    KubeObject,
    ResourceType,
)
from podium.objects.unreadable import kind_of
from podium.queues import Nominator

SEED: Final = 1

_FOLLOWED: Final = frozenset({PERSISTENT_VOLUMES.path, PERSISTENT_VOLUME_CLAIMS.path, RESOURCE_CLAIMS.path})
"""The kinds whose changes plugins follow, because binding a pod changes them."""


class ClusterState:
    """The objects of a cluster and everything derived from them. Several clusters may share one."""

    def __init__(
        self,
        config: KubeSchedulerConfiguration,
        classes: Mapping[str, type[Plugin]],
        store: ObjectStore,
        admission: Admission,
        report_broken: ReportBroken | None = None,
        changes_kept: int = CHANGES_KEPT,
    ) -> None:
        """Make an empty state.

        Args:
            changes_kept: see `podium.cluster.Snapshot`.
            report_broken: called with each object that cannot be read in full; by default such a node is refused.
        """
        self.config = config
        self.classes = classes
        self.store = store
        self.admission = admission
        self.is_shared = False
        self.originals: Mapping[tuple[str, str], LocatedManifest] = {}
        """The original manifests of objects by kind and key, for questions that read more fields than scheduling."""
        self.evaluations: WeakSet[Evaluation] = WeakSet()
        """The evaluations that read the snapshot, which must not change while they exist."""
        self.random = Random(SEED)
        """It is seeded again for each question, so that an answer does not depend on earlier questions."""
        self._frameworks: dict[str, Framework] | None = None
        self._expansions: dict[str, ExpandedPlugins] = {}
        """The plugins of each profile by its name; forks share them."""
        pod_usage_of = pod_usage_in(config.release)
        cache = Cache(report_broken or _refuse_broken_nodes, pod_usage_of, changes_kept=changes_kept)
        self._be(cache, Nominator(self._pending_pod))

    def _be(self, cache: Cache, nominator: Nominator) -> None:
        self.cache = cache
        self.nominator = nominator
        self.engine = Engine(cache, nominator, self.config.percentage_of_nodes_to_score)

    def _pending_pod(self, key: str) -> Pod | None:
        return self.store.get(PODS, key)

    def fill(self, excluded_keys: Collection[str]) -> None:
        """Add the stored nodes and pods to the cache, in order of namespace and name."""
        for node in self.store.objects(NODES).values():
            self.cache.put_node(node)
        pods = self.store.objects(PODS).values()
        for pod in pods:
            if pod.node_name and pod.key not in excluded_keys:
                self.cache.add_pod(pod)
        names = {profile.scheduler_name for profile in self.config.profiles}
        for pod in pods:
            if not pod.node_name and pod.spec.scheduler_name in names:
                self.nominator.add(pod)

    def fork(self) -> ClusterState:
        """Return a copy of the state that can be changed independently."""
        twin = object.__new__(ClusterState)
        twin.config, twin.classes, twin.admission = self.config, self.classes, self.admission
        twin.store, twin.originals = self.store.fork(), self.originals
        twin.is_shared, twin.evaluations, twin._frameworks = False, WeakSet(), None
        twin._expansions = self._expansions
        twin.random = Random(SEED)
        twin._be(self.cache.fork(), self.nominator.fork(twin._pending_pod))
        # Also the point where the next search begins, so that a fork places pods as the original would.
        twin.engine.rotation.next_start = self.engine.rotation.next_start
        return twin

    @property
    def frameworks(self) -> Mapping[str, Framework]:
        """The profiles by name, built on first use."""
        # Plugins of an earlier build must not hear of changes: they would answer from a state that is not this one.
        if self._frameworks is None:
            self.store.forget_handlers()
            handle = OfflineHandle(
                ManualClock(self.store.now_s),
                self.random,
                self.nominator,
                self.cache.snapshot,
                self.store.lister,
                release=self.config.release,
                scheduler_names=frozenset(profile.scheduler_name for profile in self.config.profiles),
            )
            for profile in self.config.profiles:
                if profile.scheduler_name not in self._expansions:
                    self._expansions[profile.scheduler_name] = expand(profile, self.classes)
            self._frameworks = {
                profile.scheduler_name: Framework(
                    profile, self.classes, handle, Observer(), expansion=self._expansions[profile.scheduler_name]
                )
                for profile in self.config.profiles
            }
        return self._frameworks

    def framework_for(self, pod: Pod) -> Framework:
        """Return the profile of the pod's scheduler name. Raises: as `Cluster.framework_for`."""
        try:
            # Here, because a pod whose requests cannot be read would fail within a plugin, without the name of its
            # field.
            filter_requests(pod.spec)
        except FieldError as error:
            raise ManifestError(f"Pod {pod.key}: {error}") from error
        name, frameworks = pod.spec.scheduler_name, self.frameworks
        framework = frameworks.get(name)
        if framework is None:
            similar = similar_name(name, frameworks)
            hint = f"; did you mean {similar}?" if similar else ""
            profile_names = ", ".join(sorted(frameworks))
            raise ClusterError(
                f"Pod {pod.key}: spec.schedulerName: no profile is named {name!r}, only {profile_names}{hint}"
            )
        return framework

    def put(self, resource: ResourceType[Any], item: KubeObject) -> None:
        """Add an object, or replace the one of its name.

        Raises:
            ManifestError, CacheError: the object cannot be added.
        """
        if isinstance(item, Pod):
            self._stop_counting(item.key)
            if item.node_name:
                self.cache.add_pod(item)
        if isinstance(item, Node):
            self.cache.put_node(item)  # first, because a node that cannot be read is refused here
        self.store.put(resource, item)
        if isinstance(item, Pod):
            if not item.node_name and item.spec.scheduler_name in self.frameworks:
                self.nominator.add(item)
        elif resource.path not in _FOLLOWED and not isinstance(item, Node):
            # Plugins cache what they derive from other objects, so they are built again.
            self._frameworks = None

    def drop(self, resource: ResourceType[Any], item: KubeObject) -> None:
        """Remove an object."""
        if isinstance(item, Pod):
            self._stop_counting(item.key)
        elif isinstance(item, Node):
            self.cache.remove_node(item.name)
        elif resource.path not in _FOLLOWED:
            self._frameworks = None
        self.store.drop(resource, item)

    def _stop_counting(self, key: str) -> None:
        pod = self.store.get(PODS, key)
        if pod is not None:
            self.nominator.delete(pod)
            if self.cache.is_assumed(pod.uid):
                self.cache.forget_pod(pod)
            else:
                self.cache.drop_pod(pod)


def _refuse_broken_nodes(item: Node | Pod, error: FieldError) -> None:
    """Refuse a node that cannot be parsed. A pod that cannot be parsed only closes its node, which the answer says."""
    if isinstance(item, Pod):
        return
    raise ManifestError(f"{kind_of(item)} {item.key}: {error}") from error
