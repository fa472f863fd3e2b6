"""A cluster as its watches show it, with its last changes, from which any recent state can be rebuilt.

Owns what counts as a change: a difference in a field that decisions read. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from podium.engine.cluster import Cluster
from podium.engine.errors import ManifestError
from podium.objects.core import Pod
from podium.objects.resource_types import NODES, PODS, KubeObject, ResourceType

CHANGES_KEPT: Final = 20_000


@dataclass(frozen=True, slots=True)
class Change:
    """One change. `old` is None for an added object, `new` for a deleted one.

    Units: `at_s` is on the observer's monotonic clock.
    """

    number: int
    at_s: float
    resource: ResourceType[Any]
    old: Any
    new: Any

    @property
    def key(self) -> str:
        """The key of the object."""
        key: str = (self.old if self.new is None else self.new).key
        return key

    @property
    def binds(self) -> bool:
        """A pending pod got its node."""
        old, new = self.old, self.new
        return isinstance(old, Pod) and isinstance(new, Pod) and bool(new.node_name) and not old.node_name

    def __str__(self) -> str:
        """Describe the change."""
        if self.binds:
            return f"Pod {self.key} bound to {self.new.node_name}"
        verb = "added" if self.old is None else "deleted" if self.new is None else "changed"
        return f"{self.resource.kind} {self.key} {verb}"


class ObservedCluster:
    """A cluster that receives every change.

    Args:
        cluster: from now on changed only through this object.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._changes: deque[Change] = deque(maxlen=CHANGES_KEPT)
        self._next_number = 0

    @property
    def resources(self) -> Collection[ResourceType[Any]]:
        """The resources that decisions depend on."""
        return tuple(dict.fromkeys((PODS, NODES, *self.cluster.store.listed_kinds)))

    @property
    def next_number(self) -> int:
        """The number of the next change."""
        return self._next_number

    def put(self, resource: ResourceType[Any], item: Any, at_s: float) -> None:
        """Add or replace an object. Raises: ManifestError: it cannot be read; the cluster is without it."""
        old = self.cluster.store.get(resource, item.key)
        try:
            self.cluster.put(resource, item)
        except ManifestError:
            # The object was replaced by one that cannot be read, so the old state is void.
            if old is not None:
                self.drop(resource, old, at_s)
            raise
        if old is None or _differ(old, item):
            self._note(resource, old, item, at_s)

    def drop(self, resource: ResourceType[Any], item: KubeObject, at_s: float) -> None:
        """Remove an object; ignore an unknown one, which could not be read before."""
        old = self.cluster.store.get(resource, item.key)
        if old is not None:
            self.cluster.drop(resource, old)
            self._note(resource, old, None, at_s)

    def changes(self, first: int, end: int | None = None) -> Sequence[Change]:
        """Return the kept changes with numbers from `first` up to, not including, `end`; oldest first."""
        return [change for change in self._changes if first <= change.number and (end is None or change.number < end)]

    def state_before(self, number: int) -> Cluster | None:
        """Rebuild the cluster before the change with that number; return None if that is too long ago.

        Cost: a fork of the cluster, and one step for each change since.
        """
        if not self._changes or self._changes[0].number > number:
            return None
        state = self.cluster.fork()
        undo(state, self.changes(number))
        return state

    def _note(self, resource: ResourceType[Any], old: Any, new: Any, at_s: float) -> None:
        self._changes.append(Change(self._next_number, at_s, resource, old, new))
        self._next_number += 1


def undo(cluster: Cluster, changes: Sequence[Change]) -> None:
    """Undo these changes of the cluster, which are given oldest first."""
    for change in reversed(changes):
        _set(cluster, change.resource, change.key, change.old)


def redo(cluster: Cluster, changes: Sequence[Change]) -> None:
    """Apply these changes to the cluster, oldest first."""
    for change in changes:
        _set(cluster, change.resource, change.key, change.new)


def _set(cluster: Cluster, resource: ResourceType[Any], key: str, item: Any) -> None:
    if item is not None:
        cluster.put(resource, item)
    elif (old := cluster.store.get(resource, key)) is not None:
        cluster.drop(resource, old)


def _differ(old: Any, new: Any) -> bool:
    if isinstance(new, Pod):
        return _decisive_fields(old) != _decisive_fields(new)
    # The version alone is no change, and heartbeats change nothing else.
    version = new.metadata.resource_version
    return bool(replace(old, metadata=replace(old.metadata, resource_version=version)) != new)


def _decisive_fields(pod: Pod) -> tuple[object, ...]:
    """Return the fields that attempts depend on; not conditions and container states, which change all the time."""
    status = pod.status
    return (
        pod.uid,
        pod.node_name,
        pod.spec,
        pod.metadata.labels,
        pod.is_terminating,
        status.nominated_node_name,
        status.allocated_resources,
        status.resources,
        status.resource_claim_statuses,
    )
