"""DynamicResources: pods go to nodes where devices can be allocated to their claims, and get them before binding.

Runs at: PreEnqueue, PreFilter, Filter, PostFilter, Score, NormalizeScores, Reserve, PreBind.
Verdict: PreEnqueue: UnschedulableAndUnresolvable while a claim is missing or unusable. Filter:
UnschedulableAndUnresolvable if devices cannot be allocated on the node, or an allocated claim cannot be used there; an
Error if a claim or class is such that it cannot be allocated at all. PostFilter: Unschedulable, and an allocation that
stands in the pod's way is taken back.
Requeue: a claim of the pod changes, any claim loses its allocation, a class or a slice is added or changes; a node is
added, changes labels or grows; the pod's own claims have been generated.
Cost: nothing for pods without claims and without extended resources that devices back; otherwise one search for
devices on each node.
Source: kubernetes pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, v1.36.2 and v1.37.2.
Differs: `filterTimeout` limits the steps of a search, 50,000 for a second, so that the same question has the same
answer; no limit (0) counts as 10 s, because no other pod is tried meanwhile. A pod keeps its claims for a minute if its
binding failed without a definite answer, since it may be bound yet; in podium's first minute it keeps those that were
reserved for it before. After that it loses them only if the API server shows that it is not bound. Devices whose
allocation failed without a definite answer are withheld until the claim has been read after a minute. After an error on
one node, the others are not looked at. Only if a claim asks for all devices, and slices of the node contradict each
other, the attempt goes on if another node has devices for the pod: one broken driver does not stop the claims of all.
The allocation that PostFilter takes back is cleared after the attempt, which does not wait for that. A claim that was
written stays as written if its pod is not bound; upstream takes it for what the watch has shown last.
"""

from __future__ import annotations

from collections.abc import Coroutine, Hashable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.config.args import DynamicResourcesArgs
from podium.devices import AllocationError, Allocator, StepsExceededError
from podium.devices.availability import is_bound_or_may_be
from podium.devices.extended_resources import extended_requests
from podium.devices.interruptible import Interruptible, run_uninterrupted
from podium.devices.pod_claims import ClaimProblem, claims_of_pod, problem_with_requests, unreadable_claim
from podium.devices.refusals import NodeRefusal
from podium.framework import contract as fwk
from podium.objects.claims import ResourceClaim
from podium.objects.core import Pod, PodSpec
from podium.objects.resource_types import DEVICE_TAINT_RULES, RESOURCE_CLAIMS
from podium.objects.selectors import compile_node_selector
from podium.objects.unreadable import UnreadableClaim
from podium.plugins.dynamic_resources.binding_conditions import wait_until_ready
from podium.plugins.dynamic_resources.claim_writer import ClaimWriter
from podium.plugins.dynamic_resources.node_search import NodeSearch, status_after
from podium.plugins.dynamic_resources.offline_writes import written_claims
from podium.plugins.dynamic_resources.pod_devices import NO_CLAIMS, PodDevices, is_simulated
from podium.plugins.dynamic_resources.refused_nodes import explain_nodes
from podium.plugins.dynamic_resources.special_claim import new_special_claim
from podium.plugins.shared.cluster_devices import ClusterDevices, Holders
from podium.plugins.shared.hints import is_about, queue_if
from podium.plugins.shared.normalize import default_normalize

_STEPS_PER_S: Final = 50_000
_FILTER_TIMEOUT_S: Final = 10.0
_NOT_FOUND: Final = fwk.error_status("not found")
_CLAIMS_TAKEN_BACK: Final = fwk.unschedulable("deallocation and deletion of ResourceClaims completed")
_NO_CLAIMS_TO_TAKE: Final = fwk.unschedulable("no new claims to deallocate")
_STILL_UNSCHEDULABLE: Final = fwk.unschedulable("still not schedulable")
_WITHOUT_REASON: Final = fwk.unschedulable()
_PARALLEL: Final = fwk.PreBindPreFlightResult(allow_parallel=True)


class DynamicResources(
    fwk.PreEnqueuePlugin,
    fwk.PreFilterPlugin,
    fwk.LongFilterPlugin,
    fwk.FilterPlugin,
    fwk.PostFilterPlugin,
    fwk.PodGroupPostFilterPlugin,
    fwk.TableScorePlugin,
    fwk.ScorePlugin,
    fwk.ReservePlugin,
    fwk.PreBindPlugin,
    fwk.WritingPlugin,
    fwk.ChoosingPlugin,
):
    """Allocates devices to the claims of pods, and has the allocations written before the pods are bound.

    Attributes:
        devices: those of the cluster, which all profiles share.
    """

    def __init__(self, args: DynamicResourcesArgs, handle: fwk.Handle) -> None:
        self._handle = handle
        self.devices = handle.shared(ClusterDevices)
        if args.has_fractional_ranges:
            self.devices.allow_fractional_ranges()
        if args.has_taint_rules:
            self.devices.follow_taint_rules(handle.lister(DEVICE_TAINT_RULES))
        self._rules = handle.release.devices
        self._search = NodeSearch(self.devices, handle.clock, args.binding_timeout_s, self._rules)
        # Upstream's timeout in steps: a replay must end a search where the recorded attempt did.
        self._steps_max = int((args.filter_timeout_s or _FILTER_TIMEOUT_S) * _STEPS_PER_S)
        self._binding_timeout_s = args.binding_timeout_s
        self._writer = ClaimWriter(handle, self.devices)
        groups = handle.pod_groups
        self._is_placed_by_topology = groups is not None and groups.rules.are_placed_by_topology

    def pre_enqueue(self, pod: Pod) -> fwk.Status | None:
        """Return UnschedulableAndUnresolvable if a claim is missing, being deleted, or owned by another object."""
        if not pod.spec.resource_claims:
            return None
        claims = self._claims_of(pod)
        return fwk.unresolvable(claims.reason) if isinstance(claims, ClaimProblem) else None

    def _claims_of(self, pod: Pod) -> tuple[ResourceClaim, ...] | ClaimProblem:
        return claims_of_pod(pod, self.devices.claims.get)

    # ------------------------------------------------------------ filtering

    def filter_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return CLUSTER for pods that may need devices, otherwise NODE."""
        return fwk.Scope.CLUSTER if spec.resource_claims or self._has_backed_resources(spec) else fwk.Scope.NODE

    def score_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return the same as `filter_scope`."""
        return self.filter_scope(spec)

    def _has_backed_resources(self, spec: PodSpec) -> bool:
        """Return whether a class provides one of the extended resources that the pod requests."""
        requests = extended_requests(spec)
        return bool(requests) and any(self.devices.class_for(resource) is not None for resource in requests)

    def pre_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[fwk.PreFilterResult | None, fwk.Status | None]:
        """Return Skip for a pod without claims, UnschedulableAndUnresolvable if a claim cannot be allocated now."""
        # Upstream fails in later points if nothing was written, also for pods without claims.
        state.write(NO_CLAIMS)
        is_special = self._has_backed_resources(pod.spec)
        if not pod.spec.resource_claims and not is_special:
            return None, fwk.SKIP
        # The claims may have changed since PreEnqueue, which does not run again for each attempt.
        claims = self._claims_of(pod)
        if isinstance(claims, ClaimProblem):
            return None, fwk.unresolvable(claims.reason)
        pod_devices = PodDevices(list(claims), len(claims), extended_requests(pod.spec))
        if is_special:
            # A claim of an earlier attempt keeps its devices, so it is used again.
            earlier_claim = self.devices.claims.of_extended_resources(pod)
            if earlier_claim is not None and (reason := unreadable_claim(earlier_claim)) is not None:
                return None, fwk.unresolvable(reason)
            pod_devices.claims.append(earlier_claim or new_special_claim(pod, self._handle.random))
        if not pod_devices.claims:
            return None, fwk.SKIP
        self.devices.begin()
        pod_devices.are_written = state.find(fwk.ChosenElsewhere) is not None
        pod_devices.was_reserved = any(claim.is_reserved_for(pod.uid) for claim in pod_devices.claims)
        pod_devices.ways_max = 0 if (search := state.find(fwk.ThoroughSearch)) is None else search.ways_max
        problem = self._prepare(pod_devices, is_simulated=is_simulated(state))
        if problem is None:
            # Upstream stores the claims at the end only: after a rejection here, PostFilter finds none.
            state.write(pod_devices)
            if pod_devices.indexes_to_allocate and (left_s := self.devices.doubt_left_s()) is not None:
                # No event follows when devices are no longer withheld.
                self._handle.activate([pod], left_s)
        return None, problem

    def _prepare(self, pod_devices: PodDevices, *, is_simulated: bool) -> fwk.Status | None:
        """Read selectors and pending allocations of the claims, or return why they cannot be used now."""
        devices = self.devices
        for index, claim in enumerate(pod_devices.claims):
            allocation = claim.status.allocation
            if allocation is not None:
                if allocation.node_selector is not None:
                    matcher = compile_node_selector(allocation.node_selector)
                    if matcher.errors:
                        return fwk.error_status(matcher.errors[0])
                    pod_devices.selectors[index] = matcher
                continue
            # In a group's simulation, members that share a claim use what the first of them was given.
            pending_allocation = devices.simulated_allocation(claim.metadata.uid) if is_simulated else None
            if pending_allocation is not None:
                pod_devices.pending[index] = pending_allocation
                is_asked = pod_devices.ways_max or self._handle.release.queue.has_group_entries
                if is_asked and pending_allocation.node_selector is not None:
                    pod_devices.selectors[index] = compile_node_selector(pending_allocation.node_selector)
                continue
            if devices.is_in_flight(claim.metadata.uid):
                return fwk.unresolvable(f"resource claim {claim.key} is in the process of being allocated")
            # The special claim has no requests yet: they depend on the node.
            if index >= pod_devices.user_count:
                continue
            problem = problem_with_requests(claim, devices.class_named)
            if problem is not None:
                return fwk.error_status(problem.reason) if problem.is_error else fwk.unresolvable(problem.reason)
        if pod_devices.indexes_to_allocate:
            pod_devices.allocator = Allocator(
                devices.inventory(),
                devices.class_named,
                devices.allocated_devices(),
                self._handle.random,
                self._steps_max,
                devices.questions,
            )
            pod_devices.fresh = [
                pod_devices.claims[index]
                for index in pod_devices.indexes_to_allocate
                if index not in pod_devices.pending
            ]
        return None

    def filter_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Return the number of each node's status among those of the attempt.

        Raises:
            FilterInterrupted: the attempt's turn is over, or what comes next takes long.
        """
        pod_devices = state.find(PodDevices)
        if pod_devices is None:
            raise fwk.PluginError("not found")
        if not pod_devices.claims:
            return None
        turn, steps = state.find(fwk.Turn), pod_devices.interrupted
        # Kept only until the search goes on: an attempt that is given up must not keep it.
        pod_devices.interrupted = None
        if steps is None:
            steps = self._search.on_rows(pod_devices, pod, snapshot, rows)
        try:
            while True:
                work = next(steps)
                # Only where the attempt may pause; a dry run has to be finished at once.
                if turn is not None and (turn.is_over if work is None else turn.is_open):
                    pod_devices.interrupted = steps
                    raise fwk.FilterInterrupted(work)
        except StopIteration as end:
            numbers: IntArray = end.value
            return numbers

    def explain(self, state: fwk.CycleState, pod: Pod, verdict: int) -> fwk.Status:
        """Return the status of that number."""
        return state.read(PodDevices).statuses[verdict - 1]

    def holders(self) -> Interruptible[Holders]:
        """Return which claims have which devices. Yields where it can be interrupted."""
        return self.devices.holders()

    def explain_nodes(
        self, pod: Pod, snapshot: Snapshot, rows: Rows, holders: Holders | None = None
    ) -> Mapping[int, NodeRefusal]:
        """Return why each of these rejected nodes has no devices for the pod; it serves explanations, not scheduling.

        Args:
            holders: as `holders` returns them; with them a few nodes are explained in some milliseconds, or not at all.
        """
        timeout_s, now_s = self._binding_timeout_s, self._handle.clock.now()
        return explain_nodes(
            self.devices,
            pod,
            snapshot,
            rows,
            lambda claim: timeout_s is None or is_bound_or_may_be(claim, now_s, timeout_s),
            holders,
        )

    def filter(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Return success, UnschedulableAndUnresolvable, or an Error that ends the attempt."""
        pod_devices = state.find(PodDevices)
        if pod_devices is None:
            return fwk.error_status(fwk.PluginError("not found"))
        if not pod_devices.claims:
            return None
        if pod_devices.error is not None:
            return pod_devices.error
        try:
            return run_uninterrupted(self._search.on_node(pod_devices, pod, node))
        except (StepsExceededError, AllocationError, ValueError) as error:
            return status_after(pod_devices, node.name, error)

    def ways(self, state: fwk.CycleState, node_name: str) -> int:
        """Return how many sets of devices the pod may get on the node."""
        pod_devices = state.find(PodDevices)
        return 1 if pod_devices is None else len(pod_devices.ways.get(node_name, ())) or 1

    def choose(self, state: fwk.CycleState, node_name: str, way: int) -> Hashable:
        """Choose one of these sets for Reserve. Returns the devices, and the names of claims that pods may share."""
        pod_devices = state.find(PodDevices)
        if pod_devices is None or node_name not in pod_devices.ways:
            return ()
        on_node = pod_devices.by_node[node_name] = pod_devices.ways[node_name][way]
        return tuple(
            # Claims of a template are of one pod alone, so that their names tell nothing about the search.
            (
                "" if pod_devices.claims[index].metadata.controller else pod_devices.claims[index].key,
                tuple((result.driver, result.pool, result.device) for result in allocation.devices.results),
            )
            for index, allocation in zip(pod_devices.indexes_to_allocate, on_node.results, strict=True)
            if index not in pod_devices.pending
        )

    def post_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, filtered_nodes: fwk.FilteredNodes
    ) -> tuple[fwk.PostFilterResult | None, fwk.Status | None]:
        """Return Unschedulable. An allocation that no other pod uses is taken back if nodes could not use it."""
        return None, self._take_back_claim(state, pod)

    def pod_group_post_filter(self, unscheduled: fwk.UnscheduledGroup) -> fwk.Steps[fwk.GroupHelp | fwk.Status]:
        """Return Unschedulable. Allocations are taken back as for single pods, except in groups with a topology."""
        yield from ()
        if self._is_placed_by_topology and unscheduled.group.spec.scheduling_constraints is not None:
            return fwk.unschedulable()
        attempts = [attempt for attempt in unscheduled.attempts if self.name in attempt.pre_filtered_by]
        if not attempts:
            return _NOT_FOUND
        for attempt in attempts:
            status = self._take_back_claim(attempt.state, attempt.pod)
            if not status.is_rejected:
                return status
        return _CLAIMS_TAKEN_BACK

    def _take_back_claim(self, state: fwk.CycleState, pod: Pod) -> fwk.Status:
        pod_devices = state.find(PodDevices)
        if pod_devices is None:
            return _NOT_FOUND
        if not pod_devices.claims:
            return self._nothing_freed(_NO_CLAIMS_TO_TAKE)
        if left_s := self.devices.may_be_bound_for_s(pod):
            # The outcome of the binding is unknown until then, and no event follows.
            self._handle.activate([pod], left_s)
            return self._nothing_freed(_STILL_UNSCHEDULABLE)
        if reason := pod_devices.free_one(pod, self._handle.random):
            return fwk.unschedulable(reason)
        return self._nothing_freed(_STILL_UNSCHEDULABLE)

    def _nothing_freed(self, status: fwk.Status) -> fwk.Status:
        return status if self._handle.release.preemption.tell_no_deallocation else _WITHOUT_REASON

    # ------------------------------------------------------------ scoring

    def score_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Prefer nodes whose chosen alternatives stand early in their requests; 0 if nothing was allocated."""
        pod_devices = state.find(PodDevices)
        if pod_devices is None or not pod_devices.has_alternatives:
            return np.zeros(len(rows), np.int64)
        return np.array([pod_devices.preference_for(snapshot.name(row)) for row in rows.tolist()], np.int64)

    def score(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> int:
        """Do as `score_rows`, for one node."""
        pod_devices = state.find(PodDevices)
        return 0 if pod_devices is None else pod_devices.preference_for(node.name)

    def normalize_scores(self, state: fwk.CycleState, pod: Pod, scores: IntArray) -> IntArray:
        """Scale the scores to 0..MAX_NODE_SCORE."""
        return default_normalize(scores)

    # ------------------------------------------------------------ binding

    def reserve(self, state: fwk.CycleState, pod: Pod, node_name: str) -> fwk.Status | None:
        """Note the allocations that were found on the node, so that no other pod gets these claims or devices."""
        pod_devices = state.find(PodDevices)
        if pod_devices is None or pod_devices.allocator is None:
            return None
        pod_devices.is_unreserved = False
        indexes, on_node = pod_devices.indexes_to_allocate, pod_devices.devices_on(node_name)
        # Only an extended resource that the node itself provides needs no devices.
        if on_node is None:
            needs_none = all(index >= pod_devices.user_count for index in indexes)
            return None if needs_none else fwk.error_status("claim allocation not found for node")
        for index, allocation in zip(indexes, on_node.results, strict=True):
            claim = pod_devices.claims[index]
            pod_devices.reserved[index], uid = allocation, claim.metadata.uid
            if self._rules.fly_until_bound and index < pod_devices.user_count:
                try:
                    if self.devices.is_allocated(claim):
                        continue  # PreBind says that it was allocated elsewhere.
                except fwk.PluginError as error:
                    return fwk.error_status(error)
            pod_devices.in_flight[index] = uid
            self.devices.start_allocation(uid, allocation, is_simulated=is_simulated(state))
        return None

    def unreserve(self, state: fwk.CycleState, pod: Pod, node_name: str) -> None:
        """Drop the allocations that have not been written."""
        pod_devices = state.find(PodDevices)
        if pod_devices is None or not pod_devices.claims:
            return
        for index, uid in pod_devices.in_flight.items():
            claim = pod_devices.claims[index]
            if self.devices.give_up_allocation(uid, claim):
                # The claim as the watch knows it, since what was assumed may never be written.
                self.devices.claims.restore(claim.key)
        pod_devices.in_flight.clear()
        pod_devices.is_unreserved = True

    def pre_bind_pre_flight(
        self, state: fwk.CycleState, pod: Pod, node_name: str
    ) -> tuple[fwk.PreBindPreFlightResult | None, fwk.Status | None]:
        """Return Skip for a pod without claims."""
        pod_devices = state.find(PodDevices)
        return _PARALLEL, None if pod_devices is not None and pod_devices.claims else fwk.SKIP

    async def pre_bind(self, state: fwk.CycleState, pod: Pod, node_name: str) -> fwk.Status | None:
        """Write the allocations, reserve the claims for the pod, and wait until the devices are ready."""
        pod_devices = state.find(PodDevices)
        if pod_devices is None:
            return None
        try:
            await self._writer.write(pod_devices, pod, node_name)
            if self._binding_timeout_s is not None:
                await wait_until_ready(self._handle, self.devices, pod_devices, pod, node_name, self._binding_timeout_s)
        except fwk.PluginError as error:
            return fwk.error_status(error)
        self._end_allocations(pod_devices)
        return None

    def _end_allocations(self, pod_devices: PodDevices) -> None:
        """Take allocations out of flight whose claims are written."""
        while pod_devices.in_flight:
            self.devices.end_allocation(pod_devices.in_flight.popitem()[1], for_all=self._rules.fly_until_bound)

    def clean_up(self, state: fwk.CycleState, pod: Pod) -> Coroutine[Any, Any, None] | None:
        """Release the claims of a pod that is not bound; carry out what PostFilter decided.

        Claims that may have got devices late are read, so that others can have the devices if they have not.
        """
        pod_devices = state.find(PodDevices)
        if pod_devices is None or not pod_devices.claims:
            return None
        takes_back = (
            pod_devices.is_unreserved
            or pod_devices.claim_to_deallocate is not None
            or pod_devices.claim_to_delete is not None
        )
        # If the pod may be bound by now, its claims must stay as they are.
        if takes_back and (left_s := self._may_be_bound_for_s(state, pod_devices, pod)):
            self._handle.activate([pod], left_s)
            takes_back = False
        doubts = self.devices.overdue_doubts()
        return self._writer.clean_up(pod_devices if takes_back else None, doubts, pod) if takes_back or doubts else None

    def _may_be_bound_for_s(self, state: fwk.CycleState, pod_devices: PodDevices, pod: Pod) -> float:
        """Return for how many seconds the API server may still bind the pod, whichever process requested it."""
        if state.find(fwk.BindingInDoubt) is not None:
            self.devices.doubt_binding(pod)
        elif pod_devices.was_reserved:
            self.devices.doubt_binding(pod, is_inherited=True)
        return self.devices.may_be_bound_for_s(pod)

    def writes_before_binding(self, state: fwk.CycleState, pod: Pod, node_name: str) -> Sequence[fwk.ObjectWrite]:
        """Return the claims, allocated and reserved for the pod. The caller writes them: none stays in flight."""
        pod_devices = state.find(PodDevices)
        if pod_devices is None:
            return []
        writes = written_claims(pod_devices, pod, node_name, self._handle.clock.now(), self.devices.claims)
        self._end_allocations(pod_devices)
        return writes

    def writes_after_failure(self, state: fwk.CycleState, pod: Pod) -> Sequence[fwk.ObjectWrite]:
        """Return the claim that loses its allocation, or is deleted."""
        pod_devices, resource = state.find(PodDevices), RESOURCE_CLAIMS
        if pod_devices is None:
            return []
        if pod_devices.claim_to_delete is not None:
            return [fwk.ObjectWrite(resource, pod_devices.claim_to_delete, None)]
        claim = pod_devices.claim_to_deallocate
        return [] if claim is None else [fwk.ObjectWrite(resource, self.devices.claims.get(claim.key), claim)]

    # ------------------------------------------------------------ requeueing

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register whatever may make devices available, or the pod's claims usable."""
        add, update = fwk.ActionType.ADD, fwk.ActionType.UPDATE
        nodes = (add, fwk.ActionType.UPDATE_NODE_LABEL, fwk.ActionType.UPDATE_NODE_ALLOCATABLE)
        claims = (add, update, fwk.ActionType.DELETE) if self._rules.wake_on_deletion else (add, update)
        generated = fwk.ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
        return (
            fwk.on(fwk.EventResource.NODE, *nodes),
            fwk.on(fwk.EventResource.RESOURCE_CLAIM, *claims, hint=self.after_claim_change),
            fwk.on(self._handle.release.events.own_pod, generated, hint=self.after_claims_generated),
            fwk.on(fwk.EventResource.DEVICE_CLASS, add, update),
            fwk.on(fwk.EventResource.RESOURCE_SLICE, add, update),
        )

    def after_claim_change(self, pod: Pod, old: ResourceClaim | None, new: ResourceClaim | None) -> fwk.QueueingHint:
        """Queue if a claim lost its allocation or is readable again, or the status of a claim of the pod changed."""
        if new is None:
            # What held the devices is gone, unless it lost them before.
            return queue_if(old is None or isinstance(old, UnreadableClaim) or old.status.allocation is not None)
        claims = self._claims_of(pod)
        # PreEnqueue would gate the pod at once.
        if isinstance(claims, ClaimProblem):
            return fwk.QueueingHint.SKIP
        if isinstance(old, UnreadableClaim):
            return fwk.QueueingHint.QUEUE
        # Of any claim: its devices are free for the pod's own.
        if old is not None and old.status.allocation is not None and new.status.allocation is None:
            return fwk.QueueingHint.QUEUE
        if not any(claim.metadata.uid == new.metadata.uid for claim in claims):
            return fwk.QueueingHint.SKIP
        return queue_if(old is None or old.status != new.status)

    def after_claims_generated(self, pod: Pod, old: Pod | None, new: Pod | None) -> fwk.QueueingHint:
        """Queue if the event is about the pod itself and all its claims are usable."""
        is_own = is_about(pod, new)
        return queue_if(is_own and new is not None and not isinstance(self._claims_of(new), ClaimProblem))
