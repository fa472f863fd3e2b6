"""Coscheduling: the pods of a group start together, or none of them does.

Runs at: QueueSort, PreFilter, PostFilter, Reserve, Permit.
Verdict: PreFilter: UnschedulableAndUnresolvable while the group backs off, lacks pods, or lacks resources in the whole
cluster. Permit: Wait until as many members have a node as the group needs; Unschedulable if nothing says how many.
PostFilter: Unschedulable, and the members that wait are rejected if one of them fits nowhere.
Requeue: a pod of the same group is added, or the PodGroup is added or changes. The first member that waits activates
the others.
Cost: constant, but for one step for each member when a group is complete, rejected or activated.
Source: sigs.k8s.io/scheduler-plugins pkg/coscheduling (for Kubernetes 1.35).
Differs: without PodGroups, pods say by an annotation or label how many members their group needs. Members of one group
stay together in the queue, also if several groups were created in the same second, and one that fits nowhere goes after
those that may be enough without it; overcommitted nodes do not count against minResources. A group that was rejected
backs off for a second at least, doubling up to ten: upstream tries it again without a pause while no other pod is
active. The end of the backoff has its members tried again.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Final, Literal

import msgspec

from podium.cluster import Snapshot
from podium.framework import contract as fwk
from podium.objects.core import Pod
from podium.objects.coscheduling import CoschedulingPodGroup, GangSpec, gang_of
from podium.objects.errors import FieldError
from podium.objects.requests import Requests, requests_on_node, whole_amounts
from podium.plugins.contrib.coscheduling.gangs import Gang, Gangs
from podium.plugins.shared.hints import queue_if

_WAIT_S: Final = 60
_REJECTED_WITH_OTHERS: Final = "rejection in Unreserve"
_REJECTED_AT_ONCE: Final = "optimistic rejection in PostFilter"
_WAITS: Final = fwk.Status(fwk.Code.WAIT)
_NO_HELP: Final = fwk.Status(fwk.Code.UNSCHEDULABLE)

_Seconds = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class CoschedulingArgs(msgspec.Struct, frozen=True, rename="camel"):
    """The plugin's args; names and defaults are upstream's.

    Attributes:
        permit_waiting_time_seconds: how long members wait for each other, if their group does not say; 0 means 60.
        pod_group_backoff_seconds: how long no member is tried after the group was rejected.
        pod_group_reject_percentage: the group keeps its nodes if at most this share of its members lacks one.
    """

    api_version: Literal["kubescheduler.config.k8s.io/v1"] = "kubescheduler.config.k8s.io/v1"
    kind: Literal["CoschedulingArgs"] = "CoschedulingArgs"
    permit_waiting_time_seconds: _Seconds = _WAIT_S
    pod_group_backoff_seconds: _Seconds = 0
    pod_group_reject_percentage: Annotated[int, msgspec.Meta(ge=0, le=100)] = 10

    @property
    def wait_s(self) -> int:
        """Return how long members wait for each other."""
        return self.permit_waiting_time_seconds or _WAIT_S


class Coscheduling(fwk.QueueSortPlugin, fwk.PreFilterPlugin, fwk.PostFilterPlugin, fwk.ReservePlugin, fwk.PermitPlugin):
    """Keeps gangs together that are placed pod by pod."""

    Args = CoschedulingArgs
    args: CoschedulingArgs

    def __init__(self, args: CoschedulingArgs, handle: fwk.Handle) -> None:
        super().__init__(args, handle)
        self.gangs = handle.shared(Gangs)

    # ------------------------------------------------------------ the queue

    def sort_key(self, info: fwk.QueuedPodInfo) -> tuple[int, float, str, float, str]:
        """Return the key of the order: `a` goes before `b` exactly if its key is lower."""
        pod, key = info.pod, gang_of(info.pod)
        since_s = info.initial_attempt_timestamp_s or info.timestamp_s
        if key is None:
            return -pod.priority, since_s, "", 0.0, pod.key
        unfit_s = self.gangs.get(key).unfit_s.get(pod.uid, 0.0)
        return -pod.priority, self.gangs.since_s(key, pod, since_s), key, unfit_s, pod.key

    def less(self, a: fwk.QueuedPodInfo, b: fwk.QueuedPodInfo) -> bool:
        """Return whether `a` goes before `b`: by priority, then by the age of the group."""
        return self.sort_key(a) < self.sort_key(b)

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register added pods, and PodGroups, which may complete a gang."""
        return (
            fwk.on(fwk.EventResource.POD, fwk.ActionType.ADD, hint=self.after_pod_add, scope=fwk.HintScope.LABELS),
            fwk.on(
                fwk.EventResource.COSCHEDULING_POD_GROUP,
                fwk.ActionType.ADD,
                fwk.ActionType.UPDATE,
                hint=self.after_pod_group_change,
                scope=fwk.HintScope.LABELS,
            ),
        )

    def after_pod_add(self, pod: Pod, old: Pod | None, new: Pod | None) -> fwk.QueueingHint:
        """Queue if the added pod is of the same group."""
        key = gang_of(pod)
        return queue_if(key is not None and new is not None and gang_of(new) == key)

    def after_pod_group_change(
        self, pod: Pod, old: CoschedulingPodGroup | None, new: CoschedulingPodGroup | None
    ) -> fwk.QueueingHint:
        """Queue if the group is the pod's, and asks for something else than before."""
        is_other = new is not None and (old is None or old.spec != new.spec)
        return queue_if(is_other and new is not None and gang_of(pod) == new.key)

    # ------------------------------------------------------------ before and after filtering

    def pre_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[fwk.PreFilterResult | None, fwk.Status | None]:
        """Return UnschedulableAndUnresolvable if the group cannot be complete now."""
        key = gang_of(pod)
        spec = None if key is None else self.gangs.spec_of(key, pod)
        if key is None or spec is None:
            return None, None
        if spec.problem:
            return None, fwk.unresolvable(spec.problem)
        gang, now_s = self.gangs.of_attempt(key, pod), self.handle.clock.now()
        if now_s < gang.backs_off_until_s:
            return None, fwk.unresolvable(f"podGroup {key} failed recently")
        count, name = len(gang.members), pod.metadata.name
        if count < spec.min_member:
            too_few = f"current pods number: {count}, minMember of group: {spec.min_member}"
            return None, fwk.unresolvable(f"pre-filter pod {name} cannot find enough sibling pods, {too_few}")
        if count - len(gang.gated_uids) < spec.min_member:
            return None, fwk.unresolvable(
                f"pre-filter pod {name} cannot proceed due to gated pods in the same PodGroup"
            )
        if spec.min_resources is None or now_s < gang.fits_until_s:
            return None, None
        status = _resource_gap(spec, gang, snapshot)
        if status is None:
            gang.fits_until_s = now_s + self.args.wait_s
        return None, status

    def post_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, filtered_nodes: fwk.FilteredNodes
    ) -> tuple[fwk.PostFilterResult | None, fwk.Status | None]:
        """Return Unschedulable. Members that wait are rejected at once, unless few others lack a node."""
        key = gang_of(pod)
        spec = None if key is None else self.gangs.spec_of(key, pod)
        if key is None or spec is None:
            return None, fwk.unschedulable("can not find pod group")
        gang = self.gangs.of_attempt(key, pod)
        missing_count = spec.min_member - gang.assigned_count
        if missing_count <= 0 or missing_count * 100 <= self.args.pod_group_reject_percentage * spec.min_member:
            return None, _NO_HELP
        if state.find(fwk.SimulatedGroup) is None:
            now_s = self.handle.clock.now()
            if now_s >= gang.backs_off_until_s:
                gang.unfit_s[pod.uid] = now_s
            self._reject_waiting(gang, _REJECTED_AT_ONCE)
            gang.failed_s, gang.fits_until_s = now_s, 0.0
            if len(gang.members) >= spec.min_member:
                self.gangs.back_off(gang, now_s, self.args.pod_group_backoff_seconds)
        reason = f"due to Pod {pod.metadata.name} is unschedulable even after PostFilter"
        return None, fwk.unschedulable(f"PodGroup {key} gets rejected {reason}")

    # ------------------------------------------------------------ on a node

    def reserve(self, state: fwk.CycleState, pod: Pod, node_name: str) -> fwk.Status | None:
        """Count the pod among those of its group that have a node."""
        key = gang_of(pod)
        if key is not None and state.find(fwk.SimulatedGroup) is None:
            self.gangs.of_attempt(key, pod).reserve(pod.uid)
        return None

    def unreserve(self, state: fwk.CycleState, pod: Pod, node_name: str) -> None:
        """Reject all waiting members with this one: no node is held for a gang that cannot be completed."""
        key = gang_of(pod)
        if key is None or state.find(fwk.SimulatedGroup) is not None:
            return
        gang = self.gangs.get(key)
        gang.reserved.discard(pod.uid)
        gang.waiting.discard(pod.uid)
        self._reject_waiting(gang, _REJECTED_WITH_OTHERS)

    def permit(self, state: fwk.CycleState, pod: Pod, node_name: str) -> tuple[fwk.Status | None, float]:
        """Return Wait until the group has its nodes; the pod that completes it lets the others go."""
        key = gang_of(pod)
        if key is None:
            return None, 0.0
        spec = self.gangs.spec_of(key, pod)
        if spec is None:
            return fwk.unschedulable("PodGroup not found"), 0.0
        gang = self.gangs.of_attempt(key, pod)
        if gang.assigned_count >= spec.min_member:
            waiting_uids, gang.waiting = gang.waiting, set()
            gang.failed_s, gang.rejections = None, 0
            for uid in waiting_uids:
                if (waiting_pod := self.handle.waiting_pods.get(uid)) is not None:
                    waiting_pod.allow(self.name)
            return None, 0.0
        if state.find(fwk.SimulatedGroup) is None:
            if not gang.waiting:
                self.handle.activate(gang.without_node())
            gang.waiting.add(pod.uid)
        return _WAITS, float(spec.timeout_s or self.args.wait_s)

    def _reject_waiting(self, gang: Gang, reason: str) -> None:
        # Cleared first, so that the Unreserve of each rejected pod finds no other pod to reject.
        waiting_uids, gang.waiting = gang.waiting, set()
        for uid in waiting_uids:
            if (waiting_pod := self.handle.waiting_pods.get(uid)) is not None:
                waiting_pod.reject(self.name, reason)


def _resource_gap(spec: GangSpec, gang: Gang, snapshot: Snapshot) -> fwk.Status | None:
    """Return the rejection if all nodes together lack resources for the group. Its own pods do not count as usage."""
    try:
        amounts_min = whole_amounts(spec.min_resources or {}, "spec.minResources")
    except FieldError as error:
        return fwk.unresolvable(str(error))
    rows = snapshot.order
    member_requests: list[Requests] = []
    for uid in (*gang.bound_uids, *gang.reserved):
        with suppress(FieldError):
            member_requests.append(requests_on_node(gang.members[uid]))
    gap = {}
    for name, amount in {**amounts_min, "pods": spec.min_member}.items():
        if name == "pods":
            free = snapshot.allowed_pods[rows] - snapshot.pod_count[rows]
            free_amount = int(free.clip(0).sum()) + len(member_requests)
        else:
            free = snapshot.allocatable(name)[rows] - snapshot.requested(name)[rows]
            free_amount = int(free.clip(0).sum()) + sum(requests.get(name, 0) for requests in member_requests)
        if free_amount < amount:
            gap[name] = amount - free_amount
    if not gap:
        return None
    amounts = ", ".join(f"{name} {amount}{'m' if name == 'cpu' else ''}" for name, amount in sorted(gap.items()))
    return fwk.unresolvable(f"resource gap: {amounts}")
