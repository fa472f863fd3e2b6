"""Causes behind Karpenter's sentences, for people: what would have to change so that a pod got a node.

Owns their texts. A recorded answer has Karpenter's sentences alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Final

from podium.objects.requests import Requests
from podium.provisioner.cloudprovider.instance_types import InstanceType, fits
from podium.provisioner.scheduling.amounts import amounts_text
from podium.provisioner.scheduling.requirements import Requirements

_SHOWN_MAX: Final = 3


def limits_text(pool: str, remaining: Requests) -> str:
    """Return the cause that a NodePool's limits leave only nodes that are too small."""
    return (
        f"the limits of NodePool {pool} leave {amounts_text(remaining)}; without them it would have a node for the pod"
    )


def unavailable_text(
    instance_types: Iterable[InstanceType],
    requirements: Requirements,
    requests: Requests,
    well_known: AbstractSet[str],
) -> str:
    """Return the cause that what would help is offered and not available now; empty if that is not the cause.

    Args:
        requirements: what the node must be like.
        requests: what it must have room for.
    """
    texts: list[str] = []
    for instance_type in instance_types:
        if not instance_type.requirements.intersects(requirements):
            continue
        for is_available, text in _offerings(instance_type, requirements, requests, well_known):
            if is_available:
                return ""
            texts.append(text)
    if not texts:
        return ""
    hidden_count = len(texts) - _SHOWN_MAX
    ending = f" and {hidden_count} more" if hidden_count > 0 else ""
    return f"what would help is offered and not available now: {', '.join(texts[:_SHOWN_MAX])}{ending}"


def _offerings(
    instance_type: InstanceType, requirements: Requirements, requests: Requests, well_known: AbstractSet[str]
) -> Iterator[tuple[bool, str]]:
    for offering in instance_type.offerings:
        if requirements.is_compatible(offering.requirements, well_known) and fits(
            requests, instance_type.allocatable_of(offering)
        ):
            yield offering.is_available, f"{instance_type.name} ({offering.zone}, {offering.capacity_type})"
