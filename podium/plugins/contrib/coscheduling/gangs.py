"""The gangs, which all profiles share: their members, and the progress of each.

Owns the membership, by the pods alone, and which members have a node. Never decides anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from podium.framework import contract as fwk
from podium.objects.core import Pod
from podium.objects.coscheduling import (
    CoschedulingPodGroup,
    GangSpec,
    gang_of,
    spec_of_gang,
)
from podium.objects.resource_types import COSCHEDULING_POD_GROUPS, PODS
from podium.objects.times import time_or_none
from podium.plugins.shared.followed import Followed

_BACKOFF_S: Final = 1.0
_BACKOFF_S_MAX: Final = 10.0
_REJECTIONS_COUNTED: Final = 10


@dataclass(slots=True, eq=False)
class Gang:
    """The members of one group by uid, and its last attempts.

    Attributes:
        bound_uids: the bound members. The `reserved` ones have a node, too, and some of them are `waiting` at Permit.
        gated_uids: the members with scheduling gates.
        unfit_s: the time at which each member last fitted on no node, if that happened.
        rejections: the number of rejections since the group was complete, which sets its backoff.
        failed_s: the time of the last failed attempt; None if none has failed since the group was complete.
        backs_off_until_s: the end of the backoff, before which no member is tried.
        fits_until_s: the time until which the check of its minimal resources holds.
    """

    members: dict[str, Pod] = field(default_factory=dict)
    bound_uids: set[str] = field(default_factory=set)
    reserved: set[str] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)
    gated_uids: set[str] = field(default_factory=set)
    unfit_s: dict[str, float] = field(default_factory=dict)
    rejections: int = 0
    failed_s: float | None = None
    backs_off_until_s: float = 0.0
    fits_until_s: float = 0.0

    @property
    def assigned_count(self) -> int:
        """Return how many members have a node, bound or not."""
        return len(self.bound_uids) + len(self.reserved)

    def without_node(self) -> Iterator[Pod]:
        """Return the members that have no node yet."""
        return (pod for uid, pod in self.members.items() if uid not in self.bound_uids and uid not in self.reserved)

    def reserve(self, uid: str) -> None:
        """Count the pod among the members with a node."""
        if uid not in self.bound_uids:
            self.reserved.add(uid)

    def set_member(self, pod: Pod) -> None:
        """Add the pod to the members, or replace its earlier state."""
        self.members[pod.uid] = pod
        (self.gated_uids.add if pod.spec.scheduling_gates else self.gated_uids.discard)(pod.uid)
        if pod.node_name:
            self.reserved.discard(pod.uid)
            self.bound_uids.add(pod.uid)

    def drop(self, uid: str) -> None:
        """Remove the pod."""
        self.members.pop(uid, None)
        self.unfit_s.pop(uid, None)
        for uids in (self.bound_uids, self.reserved, self.waiting, self.gated_uids):
            uids.discard(uid)


class Gangs:
    """Every group that has a pod, by `<namespace>/<name>`. Plugins share it by `handle.shared(Gangs)`."""

    def __init__(self, handle: fwk.Handle) -> None:
        self.objects: fwk.Lister[CoschedulingPodGroup] = handle.lister(COSCHEDULING_POD_GROUPS)
        self._gangs: dict[str, Gang] = {}
        self._backing_off: list[Gang] = []
        self._followed = Followed(handle.lister(PODS), self._on_pod_change)

    def get(self, key: str) -> Gang:
        """Return the group with that key; an empty one if no pod of it is known."""
        self._followed.read()
        return self._gangs.get(key) or Gang()

    def back_off(self, gang: Gang, now_s: float, at_least_s: float) -> None:
        """Do not try the group's members for a while, which is longer after each rejection in a row.

        A group that backs off already is left alone: its members are rejected for nothing else.
        """
        if now_s < gang.backs_off_until_s:
            return
        gang.backs_off_until_s = now_s + backoff_s(gang.rejections, at_least_s)
        gang.rejections = min(gang.rejections + 1, _REJECTIONS_COUNTED)
        self._backing_off.append(gang)

    def take_backed_off(self, now_s: float) -> list[Gang]:
        """Return the groups whose backoff has ended since the last call."""
        ready_gangs = [gang for gang in self._backing_off if gang.backs_off_until_s <= now_s]
        self._backing_off = [gang for gang in self._backing_off if gang.backs_off_until_s > now_s]
        return ready_gangs

    def of_attempt(self, key: str, pod: Pod) -> Gang:
        """Return the group of a pod that is being tried, with that pod among its members."""
        self._followed.read()
        gang = self._gangs.setdefault(key, Gang())
        if pod.uid not in gang.members:
            gang.set_member(pod)
        return gang

    def spec_of(self, key: str, pod: Pod) -> GangSpec | None:
        """Return the spec of the pod's group; None if neither a PodGroup nor the pod's labels give one."""
        return spec_of_gang(self.objects.get(key), pod)

    def since_s(self, key: str, pod: Pod, otherwise_s: float) -> float:
        """Return the time by which the group of the pod is ordered in the queue."""
        gang, spec = self.get(key), self.spec_of(key, pod)
        if gang.failed_s is not None:
            return gang.failed_s
        created_s = None if spec is None else time_or_none(spec.created)
        return otherwise_s if created_s is None else created_s

    def _on_pod_change(self, old: Pod | None, new: Pod | None) -> None:
        old_key = None if old is None else gang_of(old)
        new_key = None if new is None else gang_of(new)
        if old is not None and old_key is not None and (old_key != new_key or new is None):
            gang = self._gangs.get(old_key)
            if gang is not None:
                gang.drop(old.uid)
                if not gang.members:
                    del self._gangs[old_key]
        if new is not None and new_key is not None:
            self._gangs.setdefault(new_key, Gang()).set_member(new)


def backoff_s(rejections: int, at_least_s: float) -> float:
    """Return how long no member of a group is tried that was rejected this often before."""
    return max(at_least_s, min(math.ldexp(_BACKOFF_S, min(rejections, _REJECTIONS_COUNTED)), _BACKOFF_S_MAX))
