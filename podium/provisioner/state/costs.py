"""The costs of evicting pods, and of removing nodes.

Source: karpenter pkg/utils/disruption/disruption.go, v1.15.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from podium.objects.core import Pod
from podium.objects.selectors import parse_int64

NODE_COST: Final = 1.0
"""What the removal of a node costs, its pods aside."""

_DISRUPTION_COST: Final = "karpenter.sh/disruption-cost"
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_INT32: Final = range(-(2**31), 2**31)
_ANNOTATION_UNIT: Final = 2.0**27
_PRIORITY_UNIT: Final = 2.0**25
_COST_MAX: Final = 10.0


def eviction_cost(pod: Pod, *, reads_deletion_cost: bool = True) -> float:
    """Return the cost of evicting the pod: 1, more or less by its annotation and its priority, from -10 to 10.

    Args:
        reads_deletion_cost: whether `pod-deletion-cost` counts where `disruption-cost` is absent.
    """
    annotations = pod.metadata.annotations
    text = annotations.get(_DISRUPTION_COST)
    if text is None and reads_deletion_cost:
        text = annotations.get(_DELETION_COST)
    # As Go's ParseInt of 32 bits: what it refuses counts as no annotation.
    number = None if text is None else parse_int64(text)
    cost = 1.0
    if number is not None and number in _INT32:
        cost += number / _ANNOTATION_UNIT
    # System pods have priority 2e9, which makes them about 60 times as dear as others before the cut.
    cost += pod.priority / _PRIORITY_UNIT
    return min(max(cost, -_COST_MAX), _COST_MAX)


def removal_cost(pods: Iterable[Pod], *, reads_deletion_cost: bool = True) -> float:
    """Return the cost of removing a node with these pods. Pods whose cost is negative do not make it cheaper."""
    cost = NODE_COST
    for pod in pods:
        cost += max(0.0, eviction_cost(pod, reads_deletion_cost=reads_deletion_cost))
    return cost


def sum_in_order(amounts: Iterable[float]) -> float:
    """Return the amounts, added one after another as upstream does: rounding decides where prices are equal."""
    total = 0.0
    for amount in amounts:
        total += amount
    return total
