"""The state of one attempt at a pod with claims: the claims, and the devices for them.

Source: kubernetes v1.36.2, pkg/scheduler/framework/plugins/dynamicresources/claims.go and dynamicresources.go
(stateData).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from podium.cluster import IntArray, Rows, Snapshot
from podium.devices import Allocator
from podium.devices.extended_resources import RequestMapping
from podium.devices.interruptible import Interruptible
from podium.framework import contract as fwk
from podium.objects.claims import AllocationResult, ResourceClaim, ResourceClaimStatus
from podium.objects.core import Pod
from podium.objects.selectors import NodeMatcher

SPECIAL_NAME: Final = "<extended-resources>"
"""The name of the claim for extended resources until it is created; no API server would accept it."""

NO_MAPPINGS: Final = "nil or empty request mappings, no update of pod {pod} ExtendedResourceClaimStatus"

_ALTERNATIVES_MAX: Final = 8


@dataclass(eq=False, slots=True)
class NodeDevices:
    """The devices for the pod on one node.

    Attributes:
        results: the allocation of each claim that has none, in their order.
        special: the claim for extended resources with its requests on this node.
        mappings: the containers that use each of these requests.
    """

    results: tuple[AllocationResult, ...]
    special: ResourceClaim | None = None
    mappings: tuple[RequestMapping, ...] = ()


@dataclass(eq=False, slots=True)
class PodDevices:
    """The pod's claims, the devices that Filter found for them on each node, and the writes that follow.

    Dry runs share it: their findings hold for the attempt as well.

    Attributes:
        claims: in the order of the pod's spec, then the one for extended resources; PreBind replaces them as written.
        user_count: the number of them that the pod's spec names.
        requests: the extended resources that the pod requests.
        fresh: the claims for which the allocator has to find devices.
        selectors: the nodes that can use a claim that is allocated, by the claim's index.
        pending: allocations that other pods of the group have decided on, by the claim's index. As upstream, they do
            not keep the pod from nodes that cannot use them.
        unavailable: the indexes of claims that some node could not use.
        by_node: the devices on every node that passed, but for cached answers.
        cached_answers: the answers of the allocator that were cached, by row; `row_of` has the row of each node.
        ways_max: the number of sets of devices to search for on each node; 0 to stop at the first one.
        ways: the sets of devices on each node, if `ways_max` is not 0.
        reserved: the allocations that Reserve has decided on, by the claim's index.
        in_flight: the claim uid under which such an allocation is in flight, by the claim's index.
        interrupted: the rest of a Filter that was interrupted.
        statuses: the rejections of nodes so far, each once.
        error: the error of a node's Filter, which ends the attempt.
        is_elsewhere: true if a node has devices for the pod; None as long as no pool was broken.
        are_written: true if another scheduler has chosen the node and written the claims for it.
        was_reserved: true if one of the claims was reserved for the pod when the attempt began.
        is_unreserved: true after Unreserve: the pod is not bound.
        claim_to_deallocate: the claim that PostFilter deallocates, in its state without the allocation.
        claim_to_delete: the claim that PostFilter deletes.
    """

    claims: list[ResourceClaim] = field(default_factory=list)
    user_count: int = 0
    requests: Mapping[str, int] = field(default_factory=dict)
    allocator: Allocator | None = None
    fresh: list[ResourceClaim] = field(default_factory=list)
    selectors: dict[int, NodeMatcher] = field(default_factory=dict)
    pending: dict[int, AllocationResult] = field(default_factory=dict)
    unavailable: set[int] = field(default_factory=set)
    by_node: dict[str, NodeDevices] = field(default_factory=dict)
    cached_answers: NDArray[np.object_] = field(default_factory=lambda: np.empty(0, np.object_))
    row_of: Mapping[str, int] = field(default_factory=dict)
    ways_max: int = 0
    ways: dict[str, list[NodeDevices]] = field(default_factory=dict)
    reserved: dict[int, AllocationResult] = field(default_factory=dict)
    in_flight: dict[int, str] = field(default_factory=dict)
    interrupted: Interruptible[IntArray] | None = None
    statuses: list[fwk.Status] = field(default_factory=list)
    error: fwk.Status | None = None
    is_elsewhere: bool | None = None
    are_written: bool = False
    was_reserved: bool = False
    is_unreserved: bool = False
    claim_to_deallocate: ResourceClaim | None = None
    claim_to_delete: ResourceClaim | None = None

    @property
    def special(self) -> ResourceClaim | None:
        """Return the claim for extended resources."""
        return self.claims[-1] if len(self.claims) > self.user_count else None

    @property
    def indexes_to_allocate(self) -> list[int]:
        """Return the indexes of the claims that are not allocated."""
        return [index for index, claim in enumerate(self.claims) if claim.status.allocation is None]

    @property
    def has_alternatives(self) -> bool:
        """Return whether a claim leaves a choice of which some are preferred."""
        return any(request.first_available for claim in self.claims for request in claim.spec.devices.requests)

    @property
    def needs_devices_only(self) -> bool:
        """Return whether nothing matters on a node but the devices that are free there."""
        return self.allocator is not None and self.special is None and len(self.fresh) == len(self.claims)

    def all_results(self, fresh: Sequence[AllocationResult]) -> tuple[AllocationResult, ...]:
        """Return the allocations of all wanted claims, given those of the fresh ones."""
        if not self.pending:
            return tuple(fresh)
        results = iter(fresh)
        return tuple(self.pending.get(index) or next(results) for index in self.indexes_to_allocate)

    def note_answers(self, snapshot: Snapshot, rows: Rows, answers: NDArray[np.object_]) -> None:
        """Note the cached answers of these rows. Only those on the chosen node are ever read."""
        self.row_of = snapshot.row_of
        missing = len(snapshot.nodes) - len(self.cached_answers)
        if missing > 0:
            self.cached_answers = np.append(self.cached_answers, np.full(missing, None, np.object_))
        self.cached_answers[rows] = answers

    def devices_on(self, node_name: str) -> NodeDevices | None:
        """Return the devices on a node; None if the node has not passed or the pod needs none there."""
        on_node = self.by_node.get(node_name)
        row = self.row_of.get(node_name, -1) if on_node is None else -1
        # A node that was added since then has no answer.
        if 0 <= row < len(self.cached_answers) and isinstance(results := self.cached_answers[row], tuple):
            on_node = self.by_node[node_name] = NodeDevices(results)
        return on_node

    def number_of(self, status: fwk.Status) -> int:
        """Return the number of a rejection among `statuses`, from 1 on."""
        if status not in self.statuses:
            self.statuses.append(status)
        return self.statuses.index(status) + 1

    def preference_for(self, node_name: str) -> int:
        """Return how early the chosen alternatives stand in their requests, over all claims."""
        on_node = self.devices_on(node_name)
        if on_node is None:
            return 0
        results = iter(on_node.results)
        return sum(_preference(claim, claim.status.allocation or next(results)) for claim in self.claims)

    def free_one(self, pod: Pod, random: Random) -> str:
        """Choose an allocation to take back, or a left-over claim to delete; return the text for it, "" for neither."""
        special = self.special
        is_left_over = special is not None and special.metadata.name != SPECIAL_NAME
        unavailable = sorted(self.unavailable)
        # As upstream, which walks a set of indexes: which of several claims loses its devices is left to chance.
        random.shuffle(unavailable)
        for index in unavailable:
            claim = self.claims[index]
            if claim is special:
                if is_left_over:
                    break
                continue
            # Another pod that uses the claim runs with its devices.
            users = claim.status.reserved_for
            if not users or (len(users) == 1 and users[0].uid == pod.uid):
                self.claim_to_deallocate = replace(claim, status=ResourceClaimStatus())
                return "deallocation of ResourceClaim completed"
        if is_left_over:
            self.claim_to_delete = special
            return "deletion of ResourceClaim completed"
        return ""


NO_CLAIMS: Final = PodDevices()
"""For pods that have nothing to do with devices. Never changed."""


def _preference(claim: ResourceClaim, allocation: AllocationResult) -> int:
    request_names = {result.request for result in allocation.devices.results}
    return sum(
        _ALTERNATIVES_MAX - index
        for request in claim.spec.devices.requests
        for index, alternative in enumerate(request.first_available)
        if request.exactly is None and f"{request.name}/{alternative.name}" in request_names
    )


def is_simulated(state: fwk.CycleState) -> bool:
    """Return whether the attempt is part of the simulation of a whole pod group."""
    group = state.find(fwk.SimulatedGroup)
    return group is not None and group.state is not None
