"""The order of the clusters that fit: the emptiest or the cheapest first.

Owns both measures. The load of a cluster is the share, in percent, of its allocatable amounts that is requested with
the workload, of the resource that the workload makes scarcest. The price of a placement is the share that its pods
have of their nodes' hourly prices, by the resource of which each takes the largest part.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from podium.cluster import Snapshot
from podium.cluster.snapshot import IntArray
from podium.engine.errors import ClusterError
from podium.fleets.fit import Fit
from podium.objects.core import Node, Pod
from podium.objects.errors import FieldError
from podium.objects.requests import filter_requests, node_allocatable
from podium.objects.resource_names import CPU, MEMORY

_TYPE_LABELS: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_ANY: Final = "*"


class Order(enum.Enum):
    """Which cluster comes first."""

    EMPTIEST = "emptiest"
    CHEAPEST = "cheapest"


def requests_of(pods: Iterable[Pod]) -> Mapping[str, int]:
    """Return the total requests of the pods. Units: thousandths for cpu.

    Raises:
        FieldError: a quantity cannot be parsed.
    """
    totals: Counter[str] = Counter()
    for pod in pods:
        totals.update(filter_requests(pod.spec))
    return {resource: amount for resource, amount in totals.items() if amount}


def load_with(snapshot: Snapshot, requests: Mapping[str, int], pod_count: int) -> float:
    """Return the load of the cluster with these pods, in percent; infinite without a resource that they request."""
    # Rows without a node hold zeros, and so are not left out.
    shares = [_share(pod_count + _total(snapshot.pod_count), _total(snapshot.allowed_pods))]
    for resource in {CPU, MEMORY, *requests}:
        allocatable = _total(snapshot.allocatable(resource))
        amount = requests.get(resource, 0)
        if allocatable or amount:
            shares.append(_share(amount + _total(snapshot.requested(resource)), allocatable))
    return max(shares)


def _total(column: IntArray) -> float:
    # Amounts of nodes that lie add up to more than an integer holds.
    return float(column.sum(dtype=np.float64))


def _share(amount: float, total: float) -> float:
    return 100.0 * amount / total if total else (math.inf if amount else 0.0)


class Prices:
    """The hourly prices of nodes.

    Args:
        prices: by instance type, or by `CLUSTER/TYPE` for one cluster; `*` stands for any other type.

    Raises:
        ClusterError: a price is not a number from 0 up.
    """

    def __init__(self, prices: Mapping[str, Any] | None = None) -> None:
        self._prices: dict[str, float] = {}
        for name, price in (prices or {}).items():
            is_number = isinstance(price, int | float) and not isinstance(price, bool)
            if not is_number or not math.isfinite(price) or price < 0:
                raise ClusterError(f"prices: {name}: expected a number from 0 up, got {price!r:.40}")
            self._prices[str(name)] = float(price)

    def __bool__(self) -> bool:
        """Return whether any price is known."""
        return bool(self._prices)

    def of_node(self, cluster: str, node: Node) -> float | None:
        """Return the hourly price of the node; None if it is not known."""
        kind = next((node.metadata.labels[label] for label in _TYPE_LABELS if label in node.metadata.labels), "")
        for name in (f"{cluster}/{kind}", f"{cluster}/{_ANY}", kind, _ANY):
            if name in self._prices:
                return self._prices[name]
        return None

    def of_fit(self, cluster: str, nodes: Mapping[str, Node], fit: Fit) -> float | None:
        """Return the hourly price of the placement; None if that of a node is not known."""
        total = 0.0
        for pod in fit.pods:
            node = nodes.get(fit.nodes[pod.key])
            price = self.of_node(cluster, node) if node is not None else None
            if node is None or price is None:
                return None
            total += price * _part(node, pod)
        return total


def _part(node: Node, pod: Pod) -> float:
    """Return the largest part that the pod takes of a resource of the node."""
    try:
        allocatable, allowed_pods = node_allocatable(node)
    except FieldError:
        return 1.0
    parts = [amount / allocatable[name] for name, amount in filter_requests(pod.spec).items() if allocatable.get(name)]
    return max([*parts, 1 / allowed_pods if allowed_pods else 0.0])
