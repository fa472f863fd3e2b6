"""A member cluster that is watched through its API server.

Owns the informers of one member, and passes every change on to its columns. It only reads: nodes, pods, deployments,
replica sets, quotas if their gate is on, and for accurate estimates the kinds that the scheduler's plugins read.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from random import Random
from typing import Any, Generic, TypeVar

import anyio

from podium.client.informer_set import InformerSet
from podium.client.session import ApiSession
from podium.estimator.accurate import Rules
from podium.estimator.member import Gates, MemberCluster
from podium.estimator.quota import RESOURCE_QUOTAS
from podium.estimator.scheduler_view import SchedulerView
from podium.estimator.server.members import Freshness
from podium.estimator.workloads import DEPLOYMENTS, JOBS, REPLICA_SETS, STATEFUL_SETS
from podium.lib import garbage_collection
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.core import Node, Pod
from podium.objects.errors import FieldError
from podium.objects.resource_types import NODES, PODS, KubeObject, ResourceType
from podium.objects.unreadable import kind_of
from podium.objects.wire import BrokenObject

log = get_logger("estimator")

ItemT = TypeVar("ItemT", bound=KubeObject)


class Following(Generic[ItemT]):
    """Implements `podium.client.informer.Handler` with two functions: one for present objects, one for deleted ones."""

    def __init__(self, store: Callable[[ItemT], None], drop: Callable[[ItemT], None], cluster: str) -> None:
        self._put = store
        self._drop = drop
        self._cluster = cluster

    def on_add(self, new: ItemT, /) -> None:
        """Store an added object."""
        self._put(new)

    def on_update(self, old: ItemT, new: ItemT, /) -> None:
        """Store a changed object."""
        del old
        self._put(new)

    def on_delete(self, old: ItemT, /) -> None:
        """Remove a deleted object."""
        self._drop(old)

    def on_broken(self, broken: BrokenObject, /) -> None:
        """Log an object that cannot be read, and ignore it."""
        log.error(
            "Object cannot be read", cluster=self._cluster, kind=broken.kind, object=broken.key, error=broken.detail
        )


class LiveMember:
    """Implements `podium.estimator.server.members.Served`.

    Args:
        rules: for accurate estimates; without them they are as Karmada's.
    """

    def __init__(
        self,
        name: str,
        session: ApiSession,
        informers: InformerSet,
        gates: Gates,
        clock: Clock,
        random: Random,
        *,
        rules: Rules | None,
    ) -> None:
        self._name = name
        self._session = session
        self._informers = informers
        view = None
        if rules is not None:
            # Register these before the plugins ask for the same kinds without templates.
            informers.informer(REPLICA_SETS)
            informers.informer(STATEFUL_SETS)
            view = SchedulerView(rules, informers.informer, self._report_broken, clock, random)
        self.cluster = cluster = MemberCluster(name, self._report_broken, gates, view)
        self._follow(NODES, cluster.put_node, lambda node: cluster.drop_node(node.name))
        self._follow(PODS, cluster.put_pod, cluster.drop_pod)
        self._follow(DEPLOYMENTS, *_into(cluster.deployments))
        self._follow(REPLICA_SETS, *_into(cluster.replica_sets))
        if gates.resource_quota_estimate:
            self._follow(RESOURCE_QUOTAS, *_into(cluster.quotas))
        if rules is not None:
            self._follow(STATEFUL_SETS, *_into(cluster.stateful_sets))
            self._follow(JOBS, *_into(cluster.jobs))

    @property
    def resources(self) -> Sequence[ResourceType[Any]]:
        """The kinds that are read from the member."""
        return self._informers.resources

    @property
    def freshness(self) -> Freshness:
        """Fresh while all kinds are listed and no watch fails."""
        if not self._informers.is_synced:
            return Freshness.UNKNOWN
        failing = any(statistics.is_failing for statistics in self._informers.statistics().values())
        return Freshness.STALE if failing else Freshness.FRESH

    async def run(self) -> None:
        """Watch the member until cancelled. Call this once only, since it closes the connections at its end."""
        async with self._session, anyio.create_task_group() as group:
            group.start_soon(self._informers.run)
            await self._informers.wait_synced()
            garbage_collection.exempt_present_objects()

    def _follow(self, resource: Any, store: Callable[[Any], None], drop: Callable[[Any], None]) -> None:
        self._informers.informer(resource).add_handler(Following(store, drop, self._name))

    def _report_broken(self, item: Node | Pod, error: FieldError) -> None:
        kind = kind_of(item)
        log.error("Object cannot be read in full", cluster=self._name, kind=kind, object=item.key, error=str(error))


def _into(items: MutableMapping[str, ItemT]) -> tuple[Callable[[ItemT], None], Callable[[ItemT], None]]:
    def put(item: ItemT) -> None:
        items[item.key] = item

    def drop(item: ItemT) -> None:
        items.pop(item.key, None)

    return put, drop
