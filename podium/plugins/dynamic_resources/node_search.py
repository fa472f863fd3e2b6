"""The search for devices on node after node. It can be interrupted, and goes on where it was.

Source: kubernetes pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go (Filter), v1.36.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.devices import AllocationError, BrokenPoolError, Refusal, StepsExceededError
from podium.devices.availability import is_bound_or_may_be
from podium.devices.extended_resources import RequestMapping
from podium.devices.interruptible import Interruptible
from podium.framework.contract.status import Status, error_status, unresolvable
from podium.lib.clock import Clock
from podium.objects.claims import AllocationResult, ResourceClaim
from podium.objects.core import Pod
from podium.plugins.dynamic_resources.pod_devices import NodeDevices, PodDevices
from podium.plugins.dynamic_resources.special_claim import special_claim_on
from podium.plugins.shared.cluster_devices import ClusterDevices

_UNAVAILABLE: Final = unresolvable("resourceclaim not available on the node")
_REFUSED: Final = {refusal: unresolvable(refusal.value) for refusal in Refusal}


class NodeSearch:
    """Finds out on which nodes devices can be allocated to the claims of a pod, and which."""

    def __init__(self, devices: ClusterDevices, clock: Clock, binding_timeout_s: float | None) -> None:
        self._devices = devices
        self._clock = clock
        self._binding_timeout_s = binding_timeout_s

    def on_rows(self, found: PodDevices, pod: Pod, snapshot: Snapshot, rows: Rows) -> Interruptible[IntArray]:
        """The number of the status of each row, 0 if it has the devices. Shape: one entry per row of `rows`."""
        numbers: IntArray = np.zeros(len(rows), np.int64)
        has_short_way = found.needs_devices_only and not found.ways_max
        for position, row in enumerate(rows.tolist()):
            status = found.error
            if status is None:
                try:
                    if has_short_way:
                        status = yield from self._by_devices(found, snapshot, row)
                    else:
                        status = yield from self.on_node(found, pod, snapshot.node(row))
                except BrokenPoolError as error:
                    if found.is_elsewhere is None:
                        found.is_elsewhere = yield from self._is_elsewhere(found, pod, snapshot)
                    status = status_after(found, snapshot.name(row), error)
                except (StepsExceededError, AllocationError, ValueError) as error:
                    status = status_after(found, snapshot.name(row), error)
            if status is not None:
                numbers[position] = found.number_of(status)
            yield None
        return numbers

    def _is_elsewhere(self, found: PodDevices, pod: Pod, snapshot: Snapshot) -> Interruptible[bool]:
        """Whether any node has the devices, so that nodes with broken pools are not needed."""
        for row in snapshot.order.tolist():
            try:
                if (yield from self.on_node(found, pod, snapshot.node(row))) is None:
                    return True
            except BrokenPoolError:
                continue
            except (StepsExceededError, AllocationError, ValueError):
                return False
        return False

    def _by_devices(self, found: PodDevices, snapshot: Snapshot, row: int) -> Interruptible[Status | None]:
        """As `on_node`, for a pod whose claims all need devices and nothing else."""
        node = snapshot.nodes[row]
        assert node is not None
        assert found.allocator is not None
        name = node.metadata.name
        allocated = yield from found.allocator.allocate_interruptibly(name, node.metadata.labels, found.fresh)
        if isinstance(allocated, Refusal):
            return _REFUSED[allocated]
        found.by_node[name] = NodeDevices(allocated)
        return None

    def on_node(self, found: PodDevices, pod: Pod, node: NodeInfo) -> Interruptible[Status | None]:
        """The status of a node.

        Raises: AllocationError, StepsExceededError, ValueError.
        """
        special = found.special
        own: ResourceClaim | None = None
        mappings: tuple[RequestMapping, ...] = ()
        if special is not None:
            answer = special_claim_on(
                node, special, pod, found.requests, bool(found.user_count), self._devices.class_for
            )
            if isinstance(answer, Status):
                return answer
            own, mappings = answer
            if own is None and not found.user_count:
                return None
        unavailable = [index for index in range(len(found.claims)) if not self._is_available(found, index, node)]
        ways: Sequence[tuple[AllocationResult, ...]] = ()
        if found.allocator is not None:
            fresh = found.fresh
            if own is not None and fresh and fresh[-1] is special:
                fresh = [*fresh[:-1], own]
            if found.ways_max:
                ways = yield from found.allocator.allocations(node.name, node.labels, fresh, found.ways_max)
                if not ways:
                    return _REFUSED[Refusal.NOT_FOUND]
            else:
                allocated = yield from found.allocator.allocate_interruptibly(node.name, node.labels, fresh)
                if isinstance(allocated, Refusal):
                    return _REFUSED[allocated]
                ways = (allocated,)
        if unavailable:
            found.unavailable.update(unavailable)
            return _UNAVAILABLE
        if ways:
            found.ways[node.name] = [NodeDevices(found.completed(way), own, mappings) for way in ways]
            found.by_node[node.name] = found.ways[node.name][0]
        return None

    def _is_available(self, found: PodDevices, index: int, node: NodeInfo) -> bool:
        """Whether the node can use the claim, if it is allocated."""
        claim, selector = found.claims[index], found.selectors.get(index)
        if selector is not None and not selector.matches(node.labels, node.name):
            return False
        if claim.status.allocation is None or self._binding_timeout_s is None:
            return True
        return is_bound_or_may_be(claim, self._clock.now(), self._binding_timeout_s)


def status_after(found: PodDevices, node_name: str, error: Exception) -> Status:
    """The status of a node on which the search failed: an error ends the attempt, unless other nodes have devices."""
    if isinstance(error, BrokenPoolError) and found.is_elsewhere:
        return _REFUSED[Refusal.INVALID_POOLS]
    is_late = isinstance(error, StepsExceededError)
    text = f"node {node_name}: timed out trying to allocate devices" if is_late else str(error)
    found.error = error_status(text)
    return found.error
