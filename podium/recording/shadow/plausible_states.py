"""Enumerates the states of the cluster that the other scheduler may have decided on.

A scheduler decides before the watch shows its binding. In between, bindings overtake each other, and other changes
arrive. So a binding is compared again with the states that the scheduler may have had, the likeliest first:

1. The state in queue order: it includes pods ahead of this one, even if their bindings arrived later, and excludes pods
   behind it, even if theirs arrived earlier.
2. The same, without the last one, two, three… changes by other components.
3. The state without the last one, two, three… changes of any kind since the pod was first seen. The queue order is
   unknown for pods that waited before the watch began, or that were tried before.
4. The state with the first one, two, three… later bindings, and without the last changes.

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
"""The most changes that are undone, one after the other."""

OVERTAKEN_MAX: Final = 20
"""The most later bindings that are included, for an unknown queue order."""

_SHOWN_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class PlausibleState:
    """A state of the cluster that the other scheduler may have decided on.

    Attributes:
        assumptions: bindings that the scheduler knew of, and the watch showed later.
        unseen: changes that the watch had shown, and the scheduler did not know of.
        is_in_order: it follows the queue order, as far as the watch shows it.
    """

    cluster: Cluster
    assumptions: tuple[Change, ...]
    unseen: tuple[Change, ...]
    is_in_order: bool

    def __str__(self) -> str:
        """Describe the difference from the observed state."""
        parts = [f"{change}, seen later" for change in self.assumptions[:_SHOWN_MAX]]
        parts += [f"not yet {change}" for change in self.unseen[:_SHOWN_MAX]]
        count = len(self.assumptions) + len(self.unseen) - len(parts)
        return "; ".join([*parts, *([f"and {count} more"] if count else [])])


@dataclass(frozen=True, slots=True)
class BoundPod:
    """A pod that the other scheduler bound.

    Attributes:
        pod: its last pending state.
        turn: its place in the queue; smaller ones are tried first.
        since: the number of the change that showed it first.
        binding: the change that showed its binding.
    """

    pod: Pod
    turn: tuple[int, int]
    since: int
    binding: Change


def own_writes(bound_pod: BoundPod, history: ObservedCluster) -> Sequence[Change]:
    # A scheduler writes claims and volumes before it binds, so its own writes are part of the decision and not its
    # basis.
    """Return the scheduler's own changes of the pod's claims and volumes to bind it, oldest first."""
    pod, namespace = bound_pod.pod, bound_pod.pod.metadata.namespace
    volume_claims = {f"{namespace}/{name}" for volume in pod.spec.volumes if (name := _claim_of_volume(pod, volume))}
    names = {claim.resource_claim_name for claim in pod.spec.resource_claims}
    names |= {claim.resource_claim_name for claim in pod.status.resource_claim_statuses}
    device_claims = {f"{namespace}/{name}" for name in names if name}
    if not (volume_claims or device_claims):
        return ()

    def is_own_write(change: Change) -> bool:
        if change.resource == PERSISTENT_VOLUMES:
            claim = None if change.new is None else change.new.spec.claim_ref
            return claim is not None and f"{claim.namespace}/{claim.name}" in volume_claims
        if change.old is None or change.new is None:
            return False
        if change.resource == PERSISTENT_VOLUME_CLAIMS:
            return change.key in volume_claims
        return change.resource == RESOURCE_CLAIMS and change.key in device_claims

    return list(filter(is_own_write, history.changes(bound_pod.since, bound_pod.binding.number)))


def state_at_binding(bound_pod: BoundPod, history: ObservedCluster) -> Cluster | None:
    """Return the cluster right before the binding and its own writes; None if that is too long ago."""
    state = history.state_before(bound_pod.binding.number)
    if state is not None:
        undo(state, own_writes(bound_pod, history))
    return state


def plausible_states(
    bound_pod: BoundPod, state: Cluster, history: ObservedCluster, find_bound_pod: Callable[[str], BoundPod | None]
) -> Iterator[PlausibleState]:
    """Yield the states that the other scheduler may have decided on, the likeliest first.

    Args:
        state: as `state_at_binding` returns it.
        find_bound_pod: returns the pod with that uid if the scheduler bound it.

    Invariant: the cluster of a yielded state changes with the next one.
    """
    number = bound_pod.binding.number
    own_numbers = {change.number for change in own_writes(bound_pod, history)}
    earlier = [change for change in history.changes(bound_pod.since + 1, number) if change.number not in own_numbers]
    later = [change for change in history.changes(number + 1) if _is_pending_in(state, change)]

    def find(change: Change) -> BoundPod | None:
        return find_bound_pod(change.new.uid) if change.binds else None

    def with_writes(change: Change) -> Sequence[Change]:
        """Return the change with the scheduler's own writes for it, oldest first."""
        pod = find(change)
        return (change,) if pod is None else (*own_writes(pod, history), change)

    def in_steps(
        assumptions: Sequence[Change],
        unseen: Sequence[Change],
        candidates: Sequence[Change],
        *,
        is_in_order: bool = False,
    ) -> Iterator[PlausibleState]:
        """Yield the state with `assumptions` and without `unseen`; then undo one candidate at a time, newest first."""
        cluster = state.fork()
        for change in reversed(unseen):
            undo(cluster, with_writes(change))
        for change in assumptions:
            redo(cluster, with_writes(change))
        if assumptions or unseen:
            yield PlausibleState(cluster, tuple(assumptions), tuple(unseen), is_in_order)
        unseen_rest = list(unseen)
        # Newest first: a scheduler's snapshot lags by its last few events, if at all.
        for change in reversed(candidates[-STEPS_MAX:]):
            undo(cluster, with_writes(change))
            unseen_rest.append(change)
            yield PlausibleState(cluster, tuple(assumptions), tuple(unseen_rest), is_in_order)

    turn = bound_pod.turn
    ahead = [change for change in later if (pod := find(change)) is not None and pod.turn < turn]
    behind = [change for change in earlier if (pod := find(change)) is not None and pod.turn > turn]
    undone_pods = {change.key for change in behind}
    # Changes by others, and by nothing that the queue's order already undoes.
    foreign = [change for change in earlier if find(change) is None and change.key not in undone_pods]
    yield from in_steps(ahead, behind, foreign, is_in_order=True)
    yield from in_steps((), (), earlier)
    for count in range(1, min(len(later), OVERTAKEN_MAX) + 1):
        yield from in_steps(later[:count], (), earlier[-OVERTAKEN_MAX:])


def _is_pending_in(state: Cluster, change: Change) -> bool:
    """Tell whether the change binds a pod that is pending in that state."""
    if not change.binds:
        return False
    pod = state.store.get(change.resource, change.key)
    return pod is not None and pod.uid == change.new.uid and not pod.node_name


def _claim_of_volume(pod: Pod, volume: Volume) -> str:
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else ""
