"""The decisions on devices as a plugin, without what carries them out: for comparison with recorded answers only.

It takes the place of `podium.plugins.dynamic_resources` until that plugin allocates devices itself. It knows nothing of
extended resources that devices back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec

from podium.devices import AllocatedDevices, AllocationError, Allocator, Inventory, Refusal
from podium.devices.availability import is_bound_or_may_be
from podium.devices.pod_claims import ClaimProblem, claims_of_pod, problem_with_requests
from podium.evaluate import Evaluator
from podium.framework.contract.interface import FilterPlugin, PostFilterPlugin, PreFilterPlugin, ScorePlugin
from podium.framework.contract.status import (
    SKIP,
    PluginError,
    Status,
    error_status,
    unresolvable,
    unschedulable,
)
from podium.objects import resource_types
from podium.objects.claims import AllocationResult, ResourceClaim
from podium.objects.selectors import compile_node_selector
from podium.plugins import IN_TREE
from podium.plugins.shared.normalize import default_normalize

_ALTERNATIVES_MAX = 8


@dataclass(eq=False)
class _Claims:
    """What PreFilter found, and what Filter adds for each node."""

    claims: tuple[ResourceClaim, ...]
    wanted: tuple[ResourceClaim, ...]
    allocator: Allocator | None
    unavailable: set[int] = field(default_factory=set)
    allocations: dict[str, dict[str, AllocationResult]] = field(default_factory=dict)


class DynamicResources(PreFilterPlugin, FilterPlugin, PostFilterPlugin, ScorePlugin):
    """Answers PreFilter, Filter, PostFilter and Score; `latest` is the plugin of the latest attempt."""

    latest: ClassVar[DynamicResources]

    def __init__(self, args: Any, handle: Any) -> None:
        self._handle = handle
        self._timeout_s = args.binding_timeout_s
        self._claims = handle.lister(resource_types.RESOURCE_CLAIMS)
        self._slices = handle.lister(resource_types.RESOURCE_SLICES)
        self._classes = handle.lister(resource_types.DEVICE_CLASSES)
        self.found = _Claims((), (), None)
        self.deallocated: list[str] = []
        DynamicResources.latest = self

    def gate_of(self, pod: Any) -> Status | None:
        """The status of PreEnqueue."""
        claims = claims_of_pod(pod, self._claims.get)
        return unresolvable(claims.reason).by("DynamicResources") if isinstance(claims, ClaimProblem) else None

    def pre_filter(self, state: Any, pod: Any, snapshot: Any) -> tuple[None, Status | None]:
        self.found = _Claims((), (), None)
        state.write(self.found)
        claims = claims_of_pod(pod, self._claims.get)
        if isinstance(claims, ClaimProblem):
            return None, unresolvable(claims.reason)
        if not claims:
            return None, SKIP
        wanted = tuple(claim for claim in claims if claim.status.allocation is None)
        for claim in wanted:
            problem = problem_with_requests(claim, self._classes.get)
            if problem is not None:
                return None, unresolvable(problem.reason)
        allocator = None
        if wanted:
            allocated = AllocatedDevices.of(self._claims.list())
            allocator = Allocator(Inventory(self._slices.list()), self._classes.get, allocated, self._handle.random)
        self.found = _Claims(claims, wanted, allocator)
        state.write(self.found)
        return None, None

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        found = state.read(_Claims)
        unavailable = {index for index, claim in enumerate(found.claims) if not self._is_available(claim, node)}
        if found.allocator is not None:
            try:
                answer = found.allocator.allocate(node.name, node.labels, found.wanted)
            except AllocationError as error:
                return error_status(str(error))
            if isinstance(answer, Refusal):
                return unresolvable(answer.value)
            found.allocations[node.name] = {claim.key: each for claim, each in zip(found.wanted, answer, strict=True)}
        if unavailable:
            found.unavailable |= unavailable
            found.allocations.pop(node.name, None)
            return unresolvable("resourceclaim not available on the node")
        return None

    def _is_available(self, claim: ResourceClaim, node: Any) -> bool:
        allocation = claim.status.allocation
        if allocation is None:
            return True
        selector = allocation.node_selector
        if selector is not None and not compile_node_selector(selector).matches(node.labels, node.name):
            return False
        return is_bound_or_may_be(claim, self._handle.clock.now(), self._timeout_s)

    def post_filter(self, state: Any, pod: Any, snapshot: Any, filtered: Any) -> tuple[None, Status | None]:
        found = state.find(_Claims)
        if found is None:
            return None, error_status(PluginError("not found"))
        if not found.claims:
            return None, unschedulable("no new claims to deallocate")
        for index in sorted(found.unavailable):
            claim = found.claims[index]
            if all(each.uid == pod.metadata.uid for each in claim.status.reserved_for):
                self.deallocated.append(claim.key)
                return None, unschedulable("deallocation of ResourceClaim completed")
        return None, unschedulable("still not schedulable")

    def score(self, state: Any, pod: Any, node: Any) -> int:
        found = state.find(_Claims)
        if found is None or not found.claims:
            return 0
        own = found.allocations.get(node.name, {})
        return sum(_preference(claim, claim.status.allocation or own.get(claim.key)) for claim in found.claims)

    def normalize_scores(self, state: Any, pod: Any, scores: Any) -> Any:
        return default_normalize(scores)


def _preference(claim: ResourceClaim, allocation: AllocationResult | None) -> int:
    """How early the chosen alternatives stand in their requests."""
    if allocation is None:
        return 0
    chosen = {result.request for result in allocation.devices.results}
    return sum(
        _ALTERNATIVES_MAX - index
        for request in claim.spec.devices.requests
        for index, alternative in enumerate(request.first_available)
        if f"{request.name}/{alternative.name}" in chosen
    )


def answer(scenario: Mapping[str, Any], line: bytes) -> dict[str, Any]:
    """The answer to a recorded question about one pod."""
    evaluator = Evaluator({**IN_TREE, "DynamicResources": DynamicResources})
    found = evaluator.answer_line(line, scenario["id"])
    plugin = DynamicResources.latest
    gate = plugin.gate_of(msgspec.convert(scenario["pod"], resource_types.PODS.type))
    if gate is not None:
        found["preenqueue"] = {"code": gate.code.label, "plugin": gate.plugin, "reasons": list(gate.reasons)}
    if "error" not in found:
        feasible = plugin.found.allocations.keys() & set(found["feasible"])
        found["allocations"] = {node: plugin.found.allocations[node] for node in feasible}
        found["deallocated"] = plugin.deallocated
    return dict(json.loads(msgspec.json.encode(found)))
