"""What the other scheduler may have seen when it decided, which is not what the watch showed when the pod was bound.

A scheduler decides before its binding can be seen. In between, bindings overtake each other, and other changes arrive.
So a binding is compared again with the states that the scheduler may have decided on, the likeliest first:

1. The order of the queue: pods that were ahead of this one count on their nodes, even if their bindings came later, and
   pods that were behind it do not, even if theirs came earlier.
2. The same, without the last one, two, three… changes by others.
3. Without the last one, two, three… changes of any kind, since the pod was first seen. The order of the queue is not
   known where pods waited before the watch began, or were tried before.
4. With the first one, two, three… bindings that came later, and without the last changes.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from podium.engine.cluster import Cluster
from podium.objects.core import Pod
from podium.objects.pod_volumes import Volume
from podium.objects.resource_types import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, RESOURCE_CLAIMS
from podium.recording.shadow.observed import Change, ObservedCluster, redo, undo

STEPS_MAX: Final = 50
"""How many changes are left out at most, one after the other."""

OVERTAKEN_MAX: Final = 20
"""How many bindings that came later are tried, in an unknown order of the queue."""

_TOLD_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class View:
    """A state of the cluster that the other scheduler may have decided on.

    Attributes:
        assumed: bindings that it knew of, and the watch showed later.
        unseen: changes that the watch had shown, and it did not know of.
        is_in_order: whether the pods ahead in the queue count, and those behind do not, as far as the watch shows.
    """

    cluster: Cluster
    assumed: tuple[Change, ...]
    unseen: tuple[Change, ...]
    is_in_order: bool

    def __str__(self) -> str:
        """In words."""
        parts = [f"{each}, seen later" for each in self.assumed[:_TOLD_MAX]]
        parts += [f"not yet {each}" for each in self.unseen[:_TOLD_MAX]]
        left = len(self.assumed) + len(self.unseen) - len(parts)
        return "; ".join([*parts, *([f"and {left} more"] if left else [])])


@dataclass(frozen=True, slots=True)
class Bound:
    """A pod that the other scheduler has bound.

    Attributes:
        pod: as it was while it was pending.
        turn: its place in the queue; the pod with the smaller one is tried first.
        since: the number of the change that showed it first.
        binding: the change that showed its binding.
    """

    pod: Pod
    turn: tuple[int, int]
    since: int
    binding: Change


def own_writes(bound: Bound, observed: ObservedCluster) -> Sequence[Change]:
    """The changes of the pod's claims and their volumes that the scheduler made in order to bind it, oldest first."""
    pod, namespace = bound.pod, bound.pod.metadata.namespace
    of_volumes = {f"{namespace}/{name}" for each in pod.spec.volumes if (name := _claim_of_volume(pod, each))}
    named = {each.resource_claim_name for each in pod.spec.resource_claims}
    made = {each.resource_claim_name for each in pod.status.resource_claim_statuses}
    of_devices = {f"{namespace}/{name}" for name in named | made if name}
    if not (of_volumes or of_devices):
        return ()

    def is_its_own(change: Change) -> bool:
        if change.resource == PERSISTENT_VOLUMES:
            claim = None if change.new is None else change.new.spec.claim_ref
            return claim is not None and f"{claim.namespace}/{claim.name}" in of_volumes
        if change.old is None or change.new is None:
            return False
        if change.resource == PERSISTENT_VOLUME_CLAIMS:
            return change.key in of_volumes
        return change.resource == RESOURCE_CLAIMS and change.key in of_devices

    return [each for each in observed.changes(bound.since, bound.binding.number) if is_its_own(each)]


def state_at_binding(bound: Bound, observed: ObservedCluster) -> Cluster | None:
    """The cluster right before the binding was seen, without what the scheduler wrote for it; None if too long ago."""
    state = observed.state_before(bound.binding.number)
    if state is not None:
        undo(state, own_writes(bound, observed))
    return state


def views(
    bound: Bound, state: Cluster, observed: ObservedCluster, others: Callable[[str], Bound | None]
) -> Iterator[View]:
    """The states that the other scheduler may have decided on, the likeliest first.

    Args:
        state: as `state_at_binding` returns it.
        others: another pod that the scheduler has bound, by its uid.

    Invariant: the cluster of a view changes when the next view is asked for.
    """
    number = bound.binding.number
    own = {each.number for each in own_writes(bound, observed)}
    before = [each for each in observed.changes(bound.since + 1, number) if each.number not in own]
    later = [each for each in observed.changes(number + 1) if _is_pending_in(state, each)]

    def turn(change: Change) -> tuple[int, int] | None:
        other = others(change.new.uid) if change.binds else None
        return None if other is None else other.turn

    def with_writes(change: Change) -> Sequence[Change]:
        """The change with what the scheduler wrote for it, oldest first."""
        other = others(change.new.uid) if change.binds else None
        return (change,) if other is None else (*own_writes(other, observed), change)

    def in_steps(
        assumed: Sequence[Change], unseen: Sequence[Change], more: Sequence[Change], *, is_in_order: bool = False
    ) -> Iterator[View]:
        """The state with `assumed` and without `unseen`, then without one more change at a time, newest first."""
        cluster = state.fork()
        for change in reversed(unseen):
            undo(cluster, with_writes(change))
        for change in assumed:
            redo(cluster, with_writes(change))
        if assumed or unseen:
            yield View(cluster, tuple(assumed), tuple(unseen), is_in_order)
        without = list(unseen)
        for change in reversed(more[-STEPS_MAX:]):
            undo(cluster, with_writes(change))
            without.append(change)
            yield View(cluster, tuple(assumed), tuple(without), is_in_order)

    ahead = [each for each in later if (its := turn(each)) is not None and its < bound.turn]
    behind = [each for each in before if (its := turn(each)) is not None and its > bound.turn]
    undone_pods = {each.key for each in behind}
    foreign = [each for each in before if turn(each) is None and each.key not in undone_pods]
    yield from in_steps(ahead, behind, foreign, is_in_order=True)
    yield from in_steps((), (), before)
    for count in range(1, min(len(later), OVERTAKEN_MAX) + 1):
        yield from in_steps(later[:count], (), before[-OVERTAKEN_MAX:])


def _is_pending_in(state: Cluster, change: Change) -> bool:
    """Whether the change binds a pod that was pending in that state."""
    if not change.binds:
        return False
    known = state.store.get(change.resource, change.key)
    return known is not None and known.uid == change.new.uid and not known.node_name


def _claim_of_volume(pod: Pod, volume: Volume) -> str:
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else ""
