"""Converts the choices of a search to `status.allocation` of the claims.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, v0.36.2 and
v0.37.2.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from itertools import repeat
from random import Random

from msgspec.structs import replace

from podium.config.release_rules import DeviceRules
from podium.devices.choices import Choice
from podium.devices.errors import AllocationError
from podium.devices.requests import RequestData
from podium.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from podium.objects.claims import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from podium.objects.selectors import NODE_NAME_FIELD


def allocation_of(
    claim: ResourceClaim,
    requests: Sequence[RequestData],
    choices: Sequence[Choice],
    node_name: str,
    random: Random,
    rules: DeviceRules,
) -> AllocationResult:
    """Return the allocation of a claim.

    Args:
        requests: the alternative that was taken of each request of the claim.
        random: for the ids of shares.

    Raises:
        AllocationError: a slice has a node selector that cannot be combined with others.
    """
    results = tuple(_result(choice, random) for choice in choices)
    config = (*_config_of_classes(requests), *_config_of_claim(claim, requests, is_once=rules.shorten_config))
    if rules.shorten_config:
        config = tuple(_without_needless_names(entry, requests) for entry in config)
    try:
        selector = _node_selector(choices, node_name)
    except AllocationError as error:
        raise AllocationError(f"create NodeSelector for claim {claim.metadata.name}: {error}") from None
    return AllocationResult(devices=DeviceAllocationResult(results=results, config=config), node_selector=selector)


def _result(choice: Choice, random: Random) -> DeviceRequestAllocationResult:
    data, device = choice.data, choice.device.device
    return DeviceRequestAllocationResult(
        request=data.full_name,
        driver=choice.device.id.driver,
        pool=choice.device.id.pool,
        device=choice.device.id.device,
        admin_access=True if data.has_admin_access else None,
        tolerations=data.request.tolerations,
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
        share_id=str(uuid.UUID(int=random.getrandbits(128), version=4)) if choice.device.is_shared else None,
        consumed_capacity={name: amount.text for name, amount in choice.consumption.items()},
    )


def _config_of_classes(request_data: Sequence[RequestData]) -> Iterator[DeviceAllocationConfiguration]:
    """Yield every configuration of every class once, with the requests that have the class."""
    by_class: dict[str, list[RequestData]] = {}
    for data in request_data:
        by_class.setdefault(data.device_class.key, []).append(data)
    for requests in by_class.values():
        names = tuple(data.full_name for data in requests)
        for config in requests[0].device_class.spec.config:
            yield DeviceAllocationConfiguration(source="FromClass", requests=names, opaque=config.opaque)


def _config_of_claim(
    claim: ResourceClaim, requests: Sequence[RequestData], *, is_once: bool
) -> Iterator[DeviceAllocationConfiguration]:
    """Yield the claim's configurations: if not once, for every request that they name."""
    for config in claim.spec.devices.config:
        entry = DeviceAllocationConfiguration(source="FromClaim", requests=config.requests, opaque=config.opaque)
        if not config.requests:
            yield entry
        count = sum(_names(config.requests, data) for data in requests)
        yield from repeat(entry, min(count, 1) if is_once else count)


def _without_needless_names(
    entry: DeviceAllocationConfiguration, requests: Sequence[RequestData]
) -> DeviceAllocationConfiguration:
    """Return the configuration without names of requests if they are those of all: none means the same."""
    return replace(entry, requests=()) if all(_names(entry.requests, data) for data in requests) else entry


def _names(names: Sequence[str], data: RequestData) -> bool:
    return data.base_and_subrequest[0] in names or data.full_name in names


def _node_selector(choices: Sequence[Choice], node_name: str) -> NodeSelector | None:
    """Return the nodes that can reach all the devices; None means every node."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for choice in choices:
        device, spec = choice.device.device, choice.device.slice.spec
        source = device if spec.per_device_node_selection else spec
        if source.node_name is not None or device.binds_to_node:
            name_requirement = NodeSelectorRequirement(key=NODE_NAME_FIELD, operator="In", values=(node_name,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(name_requirement,)),))
        terms = () if source.node_selector is None else source.node_selector.node_selector_terms
        if len(terms) > 1:
            raise AllocationError(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
        for term in terms:
            _add_new(fields, term.match_fields)
            _add_new(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_expressions=tuple(expressions), match_fields=tuple(fields))
    return NodeSelector(node_selector_terms=(term,))


def _add_new(requirements: list[NodeSelectorRequirement], additions: Sequence[NodeSelectorRequirement]) -> None:
    """Add the requirements that are not there yet; the order of their values does not matter."""
    for requirement in additions:
        if not any(_are_alike(requirement, present) for present in requirements):
            requirements.append(requirement)


def _are_alike(requirement: NodeSelectorRequirement, candidate: NodeSelectorRequirement) -> bool:
    return (requirement.key, requirement.operator, frozenset(requirement.values)) == (
        candidate.key,
        candidate.operator,
        frozenset(candidate.values),
    )
