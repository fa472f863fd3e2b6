"""The search for devices on node after node. It can be interrupted, and goes on where it was.

Source: kubernetes v1.36.2 and v1.37.2, pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go (Filter).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.config import DeviceRules
from podium.devices import AllocationError, BrokenPoolError, Refusal, StepsExceededError
from podium.devices.availability import is_bound_or_may_be
from podium.devices.extended_resources import RequestMapping
from podium.devices.interruptible import Interruptible
from podium.devices.valid_answers import RowAnswers
from podium.framework import contract as fwk
from podium.lib.clock import Clock
from podium.objects.claims import AllocationResult, ResourceClaim
from podium.objects.core import Pod
from podium.plugins.dynamic_resources.pod_devices import NodeDevices, PodDevices
from podium.plugins.dynamic_resources.special_claim import special_claim_on
from podium.plugins.shared.cluster_devices import ClusterDevices

_UNAVAILABLE: Final = fwk.unresolvable("resourceclaim not available on the node")
_OPTIONAL_OPERATIONS: Final = "DRAOptionalNodeOperations"
_REFUSED: Final = {refusal: fwk.unresolvable(refusal.value) for refusal in Refusal}


class NodeSearch:
    """Finds out on which nodes devices can be allocated to the claims of a pod, and which."""

    def __init__(
        self, devices: ClusterDevices, clock: Clock, binding_timeout_s: float | None, rules: DeviceRules
    ) -> None:
        self._devices = devices
        self._rules = rules
        self._clock = clock
        self._binding_timeout_s = binding_timeout_s

    def on_rows(self, pod_devices: PodDevices, pod: Pod, snapshot: Snapshot, rows: Rows) -> Interruptible[IntArray]:
        """Return the number of the status of each row, 0 if it has the devices. Shape: one entry per row of `rows`."""
        numbers: IntArray = np.zeros(len(rows), np.int64)
        # Most pods with claims need devices and nothing else, and then a node needs no view of its own.
        has_short_way = pod_devices.needs_devices_only and not pod_devices.ways_max
        row_answers: RowAnswers | None = None
        if has_short_way and pod_devices.allocator is not None and pod_devices.error is None:
            row_answers = pod_devices.allocator.cached_answers(pod_devices.fresh, rows, snapshot)
        positions: Rows = np.arange(len(rows))
        if row_answers is not None:
            pod_devices.note_answers(snapshot, rows, row_answers.answers)
            # Hundreds of nodes are asked, and most have devices by a cached answer.
            positions = (~row_answers.are_allocations).nonzero()[0]
        for position in positions.tolist():
            if row_answers is not None and (answer := row_answers.answers[position]) is not None:
                numbers[position] = pod_devices.number_of(_REFUSED[answer])
                continue
            row = int(rows[position])
            status = pod_devices.error
            if status is None:
                try:
                    if has_short_way:
                        status = yield from self._by_devices(pod_devices, snapshot, row)
                    else:
                        status = yield from self.on_node(pod_devices, pod, snapshot.node(row))
                except BrokenPoolError as error:
                    # Asked once: one node with devices is enough to do without the broken ones.
                    if pod_devices.is_elsewhere is None:
                        pod_devices.is_elsewhere = yield from self._is_elsewhere(pod_devices, pod, snapshot)
                    status = status_after(pod_devices, snapshot.name(row), error)
                except (StepsExceededError, AllocationError, ValueError) as error:
                    status = status_after(pod_devices, snapshot.name(row), error)
            if status is not None:
                numbers[position] = pod_devices.number_of(status)
            yield None
        return numbers

    def _is_elsewhere(self, pod_devices: PodDevices, pod: Pod, snapshot: Snapshot) -> Interruptible[bool]:
        """Return whether any node has the devices, so that nodes with broken pools are not needed."""
        for row in snapshot.order.tolist():
            try:
                if (yield from self.on_node(pod_devices, pod, snapshot.node(row))) is None:
                    return True
            except BrokenPoolError:
                continue
            except (StepsExceededError, AllocationError, ValueError):
                return False
        return False

    def _by_devices(self, pod_devices: PodDevices, snapshot: Snapshot, row: int) -> Interruptible[fwk.Status | None]:
        """Do as `on_node`, for a pod whose claims all need devices and nothing else."""
        node = snapshot.nodes[row]
        assert node is not None
        assert pod_devices.allocator is not None
        name = node.metadata.name
        result = yield from pod_devices.allocator.allocate_interruptibly(name, node.metadata.labels, pod_devices.fresh)
        if isinstance(result, Refusal):
            return _REFUSED[result]
        pod_devices.by_node[name] = NodeDevices(result)
        return None

    def on_node(self, pod_devices: PodDevices, pod: Pod, node: NodeInfo) -> Interruptible[fwk.Status | None]:
        """Return the status of a node.

        Raises: AllocationError, StepsExceededError, ValueError.
        """
        special = pod_devices.special
        special_claim: ResourceClaim | None = None
        mappings: tuple[RequestMapping, ...] = ()
        if special is not None:
            answer = special_claim_on(
                node,
                special,
                pod,
                pod_devices.requests,
                bool(pod_devices.user_count),
                self._devices.class_for,
                is_written=pod_devices.are_written,
            )
            if isinstance(answer, fwk.Status):
                return answer
            special_claim, mappings = answer
            is_allocated = special.status.allocation is not None
            if special_claim is None and not pod_devices.user_count and not is_allocated:
                return None
        unavailable = [
            index for index in range(len(pod_devices.claims)) if not self._is_available(pod_devices, index, node)
        ]
        ways: Sequence[tuple[AllocationResult, ...]] = ()
        if pod_devices.allocator is not None:
            fresh = pod_devices.fresh
            if special_claim is not None and fresh and fresh[-1] is special:
                fresh = [*fresh[:-1], special_claim]
            if pod_devices.ways_max:
                ways = yield from pod_devices.allocator.allocations(node.name, node.labels, fresh, pod_devices.ways_max)
                if not ways:
                    return _REFUSED[Refusal.NOT_FOUND]
            else:
                result = yield from pod_devices.allocator.allocate_interruptibly(node.name, node.labels, fresh)
                if isinstance(result, Refusal):
                    return _REFUSED[result]
                ways = (result,)
        # After the allocation, as upstream, whose errors thus come before this rejection.
        if unavailable:
            pod_devices.unavailable.update(unavailable)
            return _UNAVAILABLE
        if ways:
            pod_devices.ways[node.name] = [
                NodeDevices(pod_devices.all_results(way), special_claim, mappings) for way in ways
            ]
            pod_devices.by_node[node.name] = pod_devices.ways[node.name][0]
        return None

    def _is_available(self, pod_devices: PodDevices, index: int, node: NodeInfo) -> bool:
        """Return whether the node can use the claim, if it is allocated."""
        claim, selector = pod_devices.claims[index], pod_devices.selectors.get(index)
        if selector is not None and not selector.matches(node.labels, node.name):
            return False
        if claim.status.allocation is None:
            return True
        if self._rules.refuse_alpha_fields and not _can_operate(node, claim.status.allocation):
            return False
        # Without the feature's timeout, binding conditions are not looked at.
        if self._binding_timeout_s is None:
            return True
        return is_bound_or_may_be(claim, self._clock.now(), self._binding_timeout_s)


def _can_operate(node: NodeInfo, allocation: AllocationResult) -> bool:
    """Return whether the node can skip operations of its kubelet, if a device of the allocation needs that."""
    return _OPTIONAL_OPERATIONS in node.node.status.declared_features or not any(
        result.skip_node_operations for result in allocation.devices.results
    )


def status_after(pod_devices: PodDevices, node_name: str, error: Exception) -> fwk.Status:
    """Return the status of a node whose search failed: an error ends the attempt, unless other nodes have devices."""
    if isinstance(error, BrokenPoolError) and pod_devices.is_elsewhere:
        return _REFUSED[Refusal.INVALID_POOLS]
    is_late = isinstance(error, StepsExceededError)
    text = f"node {node_name}: timed out trying to allocate devices" if is_late else str(error)
    pod_devices.error = fwk.error_status(text)
    return pod_devices.error
