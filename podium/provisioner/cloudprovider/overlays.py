"""NodeOverlays: prices and extended resources that change what a catalogue says of instance types.

Owns which overlay counts where. An overlay that contradicts another of the same weight does not count at all.

Source: karpenter pkg/controllers/nodeoverlay and pkg/cloudprovider/types.go, v1.15.0.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from podium.objects.errors import FieldError
from podium.objects.requests import Requests, whole_amounts
from podium.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from podium.provisioner.apis.labels import NODE_POOL
from podium.provisioner.apis.objects import NodeOverlay, NodePool
from podium.provisioner.cloudprovider.catalogue import Catalogue
from podium.provisioner.cloudprovider.instance_types import InstanceType
from podium.provisioner.scheduling.requirements import Requirement, Requirements

_STANDARD_RESOURCES = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)


@dataclass(slots=True)
class _Changes:
    """The changes to one instance type of one NodePool.

    Attributes:
        prices: By index of the offering, the change and the weight of the lightest overlay that names it.
        capacity: By resource, the amount and the weight of its overlay.
    """

    prices: dict[int, tuple[str, int]] = field(default_factory=dict)
    capacity: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[object, ...]:
        """Equal for the same changes."""
        prices = sorted((index, change) for index, (change, _) in self.prices.items())
        return (*prices, *sorted((name, amount) for name, (amount, _) in self.capacity.items()))


def adjusted_price(price: float, change: str) -> float:
    """Return the price after a change such as `0.5`, `+0.1` or `-20%`; never less than 0."""
    if not change.startswith(("+", "-")):
        return float(change)
    is_share = change.endswith("%")
    amount = float(change.removesuffix("%"))
    return max(price * (1 + amount / 100) if is_share else price + amount, 0.0)


def with_overlays(
    catalogue: Catalogue, overlays: Sequence[NodeOverlay], pools: Sequence[NodePool], well_known: frozenset[str]
) -> tuple[Catalogue, tuple[str, ...]]:
    """Return the catalogue with the changes, and a sentence for each overlay that does not count.

    An instance type that differs between NodePools is there once for each group of NodePools.
    """
    faults: list[str] = []
    changes: dict[tuple[int, str], _Changes] = defaultdict(_Changes)
    # Heavier ones first, and of equal ones the last by name: what is said first counts.
    for overlay in sorted(overlays, key=lambda item: (item.spec.weight or 0, item.metadata.name), reverse=True):
        try:
            requirements, capacity = _requirements(overlay), whole_amounts(overlay.spec.capacity, "spec.capacity")
            change = _price_change(overlay)
        except FieldError as error:
            faults.append(f"NodeOverlay {overlay.metadata.name} is not counted: {error}")
            continue
        matches = [
            (index, pool.metadata.name, offerings)
            for pool in pools
            for index, instance_type in enumerate(catalogue.instance_types)
            if (offerings := _matching_offerings(instance_type, pool, requirements, well_known))
        ]
        # All or nothing, as upstream: half of an overlay would be a plan that nobody wrote.
        weight = overlay.spec.weight or 0
        if any(
            _contradicts(changes[index, pool], offerings, change, capacity, weight)
            for index, pool, offerings in matches
        ):
            faults.append(f"NodeOverlay {overlay.metadata.name} is not counted: it contradicts one of the same weight")
            continue
        for index, pool, offerings in matches:
            _apply(changes[index, pool], offerings, change, capacity, weight)
    names = [pool.metadata.name for pool in pools]
    types = [
        variant
        for index, instance_type in enumerate(catalogue.instance_types)
        for variant in _variants(instance_type, {name: changes.get((index, name), _Changes()) for name in names})
    ]
    return dataclasses.replace(catalogue, instance_types=tuple(types)), tuple(faults)


def _requirements(overlay: NodeOverlay) -> Requirements:
    return Requirements(
        Requirement.of(rule.key, rule.operator, rule.values, path=f"spec.requirements[{index}]")
        for index, rule in enumerate(overlay.spec.requirements)
    )


def _price_change(overlay: NodeOverlay) -> str | None:
    spec = overlay.spec
    if spec.price is not None and spec.price_adjustment is not None:
        raise FieldError("spec.price", "is not for an overlay with priceAdjustment")
    for name in _STANDARD_RESOURCES:
        if name in spec.capacity:
            raise FieldError(f"spec.capacity[{name}]", "is not an extended resource")
    change = spec.price if spec.price is not None else spec.price_adjustment
    if change is not None:
        try:
            adjusted_price(0.0, change)
        except ValueError as error:
            raise FieldError("spec.price", f"{change!r} is neither a price nor a change of one") from error
    return change


def _matching_offerings(
    instance_type: InstanceType, pool: NodePool, requirements: Requirements, well_known: frozenset[str]
) -> list[int]:
    """Return the indices of the offerings that an overlay means; none if it does not mean the instance type."""
    labels = {**pool.spec.template.metadata.labels, NODE_POOL: pool.metadata.name}
    node_labels = Requirements.of_labels(labels).union(instance_type.requirements)
    if not node_labels.is_compatible(requirements):
        return []
    return [
        index
        for index, offering in enumerate(instance_type.offerings)
        if requirements.is_compatible(offering.requirements, well_known)
    ]


def _contradicts(
    changes: _Changes, offerings: Iterable[int], change: str | None, capacity: Requests, weight: int
) -> bool:
    prices = (changes.prices[index] for index in offerings if index in changes.prices)
    amounts = (changes.capacity[name] for name in capacity if name in changes.capacity)
    return (change is not None and any(weight_there == weight for _, weight_there in prices)) or any(
        weight_there == weight for _, weight_there in amounts
    )


def _apply(changes: _Changes, offerings: Iterable[int], change: str | None, capacity: Requests, weight: int) -> None:
    if change is not None:
        for index in offerings:
            # The weight is that of the last overlay, by which upstream looks for the next contradiction.
            first_change = changes.prices.get(index, (change, weight))[0]
            changes.prices[index] = first_change, weight
    for name, amount in capacity.items():
        changes.capacity.setdefault(name, (amount, weight))


def _variants(instance_type: InstanceType, changes: Mapping[str, _Changes]) -> Iterable[InstanceType]:
    pools_by_changes: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for name, of_pool in changes.items():
        pools_by_changes[of_pool.identity].append(name)
    for identity, names in pools_by_changes.items():
        variant = _with_changes(instance_type, changes[names[0]]) if identity else instance_type
        # The requirement keeps each variant out of the NodePools that it is not for.
        if len(pools_by_changes) > 1:
            rule = Requirement(NODE_POOL, False, frozenset(names))
            variant = dataclasses.replace(variant, requirements=variant.requirements.add(rule))
        yield variant


def _with_changes(instance_type: InstanceType, changes: _Changes) -> InstanceType:
    offerings = tuple(
        dataclasses.replace(
            offering,
            price=adjusted_price(offering.price, changes.prices[index][0]),
            is_priced=offering.is_priced or not changes.prices[index][0].startswith(("+", "-")),
        )
        if index in changes.prices
        else offering
        for index, offering in enumerate(instance_type.offerings)
    )
    amounts = {name: amount for name, (amount, _) in changes.capacity.items()}
    return dataclasses.replace(instance_type, offerings=offerings, capacity={**instance_type.capacity, **amounts})
