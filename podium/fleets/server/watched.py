"""One member cluster that is watched through its API server.

Owns the member's informers and the columns that they keep up to date, how long its API server has failed, and that its
nodes stay as they are while a dry run is under way. It only reads.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import anyio
import msgspec

from podium.client.informer_set import InformerSet
from podium.client.session import ApiSession
from podium.config import KubeSchedulerConfiguration
from podium.engine.cluster import Cluster
from podium.engine.cluster_state import ClusterState
from podium.engine.derivation.admission import Admission
from podium.engine.derivation.control_objects import ControlObjects, empty_list
from podium.engine.manifests import as_manifest
from podium.estimator.accurate import Rules
from podium.estimator.server.live import Following
from podium.fleets.loading import identity_of
from podium.fleets.search import Member, waiting_pods
from podium.fleets.server.informed_store import InformedStore
from podium.fleets.server.kinds import ADMITTING, SHARED_NODES, SHARED_PODS
from podium.lib import garbage_collection
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.core import Node, Pod
from podium.objects.errors import FieldError
from podium.objects.resource_types import NAMESPACES, ResourceType
from podium.objects.unreadable import kind_of

log = get_logger("fleets")

_CHANGES_KEPT: Final = 128
"""How many changes caches can catch up with: a member with more since the last question is looked at anew, in 1 ms."""

_numbers: Final = itertools.count()
"""Of watched clusters: one that is gone must not be taken for another of its name."""

_DECISIVE_KINDS: Final = ("PriorityClass", "RuntimeClass", "LimitRange")


class WatchedCluster:
    """A member cluster that is kept up to date.

    Args:
        rules: the configuration that decides, and the available plugins.
    """

    def __init__(self, name: str, session: ApiSession, informers: InformerSet, rules: Rules, clock: Clock) -> None:
        self.name = name
        self._session = session
        self._informers = informers
        self._clock = clock
        self._failing_since_s: float | None = None
        self._waiting: dict[str, Pod] = {}
        self._number = next(_numbers)
        self._changes = 0
        self._dry_runs = 0
        self._delayed: list[Callable[[], object]] = []
        self._admission_key: bytes | None = None
        # Before the plugins ask for pods and nodes in their usual form.
        informers.informer(SHARED_PODS)
        informers.informer(SHARED_NODES)
        informers.informer(NAMESPACES)
        store = InformedStore(informers, clock.now())
        self._control_objects = ControlObjects(map(empty_list, ADMITTING))
        self._state = ClusterState(
            _without_preemption(rules),
            rules.classes,
            store,
            Admission(self._control_objects),
            self._report_broken,
            _CHANGES_KEPT,
        )
        self._cluster = Cluster.of_state(self._state)
        # Built now, so that the plugins' listers have their informers, and hear of each object before the columns do.
        self._state.frameworks  # noqa: B018
        self._follow(SHARED_NODES, self._put_node, self._drop_node)
        self._follow(SHARED_PODS, self._put_pod, self._drop_pod)
        for resource in ADMITTING:
            self._follow(resource, *self._into_admission(resource))
        for resource in informers.resources:
            if resource.path not in (SHARED_PODS.path, SHARED_NODES.path):
                self._follow(resource, self._note_change, self._note_change)
        store.start()

    # ------------------------------------------------------------ the state of the watch

    @property
    def resources(self) -> Sequence[ResourceType[Any]]:
        """The kinds that are read from the member."""
        return self._informers.resources

    @property
    def is_listed(self) -> bool:
        """Whether all kinds have been listed."""
        return self._informers.is_synced

    @property
    def identity(self) -> str:
        """What identifies the cluster; "" if it is not known."""
        return identity_of(self._cluster)

    @property
    def last_error(self) -> str:
        """The error of the last list or watch that failed, while one fails; "" otherwise."""
        failing = (item for item in self._informers.statistics().values() if item.is_failing)
        return next((str(item.last_error) for item in failing if item.last_error is not None), "")

    def look(self) -> None:
        """Note whether the API server fails; called regularly."""
        is_failing = any(item.is_failing for item in self._informers.statistics().values())
        if not is_failing:
            self._failing_since_s = None
        elif self._failing_since_s is None:
            self._failing_since_s = self._clock.monotonic()

    def stop(self) -> None:
        """Note that nothing watches the member any more."""
        if self._failing_since_s is None:
            self._failing_since_s = self._clock.monotonic()

    @property
    def failing_s(self) -> float | None:
        """For how many seconds the API server has failed; None if it does not."""
        since_s = self._failing_since_s
        return None if since_s is None else self._clock.monotonic() - since_s

    def statistics(self) -> dict[str, Any]:
        """Return the numbers of nodes and of pods, those that wait included, and the minor that decides."""
        counts = self._state.cache.statistics()
        pods = counts["pods"] + len(self._waiting)
        return {"nodes": counts["nodes"], "pods": pods, "decidesAs": self._state.config.release.minor}

    async def run(self) -> None:
        """Watch the member until cancelled. Call this once only, since it closes the connections at its end."""
        async with self._session, anyio.create_task_group() as group:
            group.start_soon(self._informers.run)
            await self._informers.wait_synced()
            garbage_collection.exempt_present_objects()

    # ------------------------------------------------------------ questions

    def member(self, stale_s: float | None) -> Member:
        """Return the member as it is now, for one question."""
        return Member(self.name, self._cluster, waiting_pods(self._waiting.values()), self._key(), stale_s)

    def _key(self) -> bytes:
        """Return what is equal for members that admit pods alike."""
        if self._admission_key is None:
            digest = hashlib.sha256()
            for kind in _DECISIVE_KINDS:
                for key, manifest in sorted(self._control_objects.of_kind(kind).items()):
                    fields = {name: value for name, value in manifest.items() if name != "metadata"}
                    digest.update(msgspec.msgpack.encode((kind, key, fields), order="deterministic"))
            self._admission_key = digest.digest()
        return self._admission_key

    @contextmanager
    def dry_run(self) -> Iterator[None]:
        """Keep the nodes as they are while the context is open: a copy of the cluster reads their columns."""
        self._dry_runs += 1
        try:
            yield
        finally:
            self._dry_runs -= 1
            if not self._dry_runs:
                for change in self._delayed:
                    self._change_cache(change)
                self._delayed.clear()

    @property
    def revision(self) -> object:
        """What stays equal until something changes that may decide about a pod, which heartbeats of nodes do not."""
        return self._number, self._changes

    # ------------------------------------------------------------ changes

    def _note_change(self, item: Any) -> None:
        del item
        self._changes += 1

    def _change_cache(self, change: Callable[[], object]) -> None:
        cache = self._state.cache
        count = cache.changes
        change()
        self._changes += cache.changes != count

    def _put_node(self, node: Node) -> None:
        self._change_nodes(lambda: self._state.cache.put_node(node))

    def _drop_node(self, node: Node) -> None:
        self._change_nodes(lambda: self._state.cache.remove_node(node.name))

    def _change_nodes(self, change: Callable[[], object]) -> None:
        if self._dry_runs:
            self._delayed.append(change)
        else:
            self._change_cache(change)

    def _put_pod(self, pod: Pod) -> None:
        if pod.node_name:
            self._stop_waiting(pod.key)
            self._change_cache(lambda: self._count(pod))
        else:
            self._changes += 1
            self._waiting[pod.key] = pod
            self._state.nominator.add(pod)

    def _count(self, pod: Pod) -> None:
        cache = self._state.cache
        former_pod = cache.pod(pod.uid)
        if former_pod is not None and former_pod.node_name != pod.node_name:
            # It was deleted and created again while nothing was watched; both have their key for a uid.
            cache.drop_pod(former_pod)
        cache.put_pod(pod)

    def _drop_pod(self, pod: Pod) -> None:
        self._stop_waiting(pod.key)
        self._change_cache(lambda: self._state.cache.drop_pod(pod))

    def _stop_waiting(self, key: str) -> None:
        pod = self._waiting.pop(key, None)
        if pod is not None:
            self._changes += 1
            self._state.nominator.delete(pod)

    def _into_admission(self, resource: ResourceType[Any]) -> tuple[Callable[[Any], None], Callable[[Any], None]]:
        objects = self._control_objects

        def store(item: Any) -> None:
            objects.put(as_manifest(resource, item))
            self._admission_key = None

        def drop(item: Any) -> None:
            objects.drop(resource.kind, item.key)
            self._admission_key = None

        return store, drop

    def _follow(self, resource: ResourceType[Any], store: Callable[[Any], None], drop: Callable[[Any], None]) -> None:
        self._informers.informer(resource).add_handler(Following(store, drop, self.name))

    def _report_broken(self, item: Node | Pod, error: FieldError) -> None:
        kind = kind_of(item)
        log.error("Object cannot be read in full", cluster=self.name, kind=kind, object=item.key, error=str(error))


def _without_preemption(rules: Rules) -> KubeSchedulerConfiguration:
    """Return the configuration whose profiles preempt nothing."""
    config = rules.config
    profiles = tuple(Rules(replace(config, profiles=(profile,)), rules.classes).profile for profile in config.profiles)
    return replace(config, profiles=profiles)
