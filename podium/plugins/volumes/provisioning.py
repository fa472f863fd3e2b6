"""Decides if a volume can be provisioned for a claim: by the class's provisioner, in its topology, within its capacity.

Source: kubernetes v1.36.2, pkg/scheduler/framework/plugins/volumebinding/binder.go (checkVolumeProvisions,
hasEnoughCapacity) and pkg/apis/core/v1/helper (MatchTopologySelectorTerms).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from podium.cluster import IntArray, Rows, Snapshot
from podium.cluster.snapshot import BoolArray
from podium.framework import contract as fwk
from podium.objects.errors import FieldError
from podium.objects.quantity import QuantityError, value
from podium.objects.selectors import (
    Operator,
    Requirement,
    Selector,
    compile_selector,
    is_label_value,
    is_qualified_name,
)
from podium.objects.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
    TopologyTerm,
)
from podium.plugins.volumes.free_volumes import STORAGE
from podium.plugins.volumes.volume_nodes import LabelTest

UNKNOWN: Final = -1
"""The capacity of nodes from which none is known to be in reach."""
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


def can_provision(storage_class: StorageClass) -> bool:
    """Return whether the class has a provisioner at all."""
    return storage_class.provisioner not in ("", _NO_PROVISIONER)


def topology_allows(storage_class: StorageClass, labels: Mapping[str, str]) -> bool:
    """Return whether the class's allowed topologies include a node with those labels."""
    terms = storage_class.allowed_topologies
    return not terms or any(
        all(requirement.matches(labels) for requirement in requirements)
        for term in terms
        if (requirements := _requirements(term))
    )


def topology_mask(storage_class: StorageClass, snapshot: Snapshot, rows: Rows) -> BoolArray:
    """Return which of the rows the class's allowed topologies include. Shape: one entry per row of `rows`."""
    terms = storage_class.allowed_topologies
    # No terms allow every node, whereas an empty term among them allows none.
    is_allowed = np.full(len(rows), not terms, np.bool_)
    for term in terms:
        requirements = _requirements(term)
        if not requirements:
            continue
        in_term = np.ones(len(rows), np.bool_)
        for requirement in requirements:
            in_term &= LabelTest(requirement).matching(snapshot, rows)
        is_allowed |= in_term
    return is_allowed


def _requirements(term: TopologyTerm) -> tuple[Requirement, ...]:
    """Return the term's requirements; empty for an empty or invalid term, which allows no node."""
    expressions = term.match_label_expressions
    if not all(is_qualified_name(expression.key) and expression.values for expression in expressions):
        return ()
    if not all(is_label_value(value) for expression in expressions for value in expression.values):
        return ()
    return tuple(Requirement(expression.key, Operator.IN, frozenset(expression.values)) for expression in expressions)


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """Return the size in bytes of the largest volume that can be provisioned there; None if it is not known."""
    # The largest single volume counts; the total capacity is the next best thing to know.
    raw = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
    try:
        return None if raw is None else value(raw)
    except QuantityError:
        return None


class StorageCapacity:
    """Finds the nodes with access to enough storage capacity for a claim's new volume.

    Args:
        capacities: the driver's CSIStorageCapacity objects; only read if the driver publishes its capacity.
    """

    def __init__(
        self,
        claim: PersistentVolumeClaim,
        storage_class: StorageClass,
        driver: CSIDriver | None,
        capacities: fwk.Lister[CSIStorageCapacity],
    ) -> None:
        raw = claim.spec.resources.requests.get(STORAGE)
        self.size = 0
        self._reachable: tuple[tuple[Selector, int], ...] | None = None
        # Without published capacities upstream assumes that there is enough.
        if raw is None or driver is None or not driver.spec.storage_capacity:
            return
        self.size = size = value(raw)
        self._reachable = tuple(
            (selector, _amount(capacity))
            for capacity in capacities.list()
            if capacity.storage_class_name == storage_class.metadata.name
            and (limit := volume_limit(capacity)) is not None
            and limit >= size
            and (selector := _accessible_from(capacity)) is not None
        )

    def has_enough(self, labels: Mapping[str, str]) -> bool:
        """Return whether a node with those labels has access to enough capacity."""
        return self._reachable is None or any(selector.matches(labels) for selector, _ in self._reachable)

    def amount_on(self, labels: Mapping[str, str]) -> int:
        """Return the capacity in bytes that a volume of a node with those labels would be taken from, or UNKNOWN."""
        return next((amount for selector, amount in self._reachable or () if selector.matches(labels)), UNKNOWN)

    def amounts(self, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Return `amount_on` of each row; None if all are UNKNOWN. Shape: one entry per row of `rows`."""
        if not self._reachable:
            return None
        amounts = np.full(len(rows), UNKNOWN, np.int64)
        for selector, amount in reversed(self._reachable):
            amounts[_matching(selector, snapshot, rows)] = amount
        return amounts

    def capacity_mask(self, snapshot: Snapshot, rows: Rows) -> BoolArray:
        """Return which of the rows have access to enough capacity. Shape: one entry per row of `rows`."""
        enough = np.full(len(rows), self._reachable is None, np.bool_)
        for selector, _ in self._reachable or ():
            enough |= _matching(selector, snapshot, rows)
        return enough


def _matching(selector: Selector, snapshot: Snapshot, rows: Rows) -> BoolArray:
    matches = np.ones(len(rows), np.bool_)
    for requirement in selector.requirements:
        matches &= LabelTest(requirement).matching(snapshot, rows)
    return matches


def _amount(capacity: CSIStorageCapacity) -> int:
    try:
        return UNKNOWN if capacity.capacity is None else value(capacity.capacity)
    except QuantityError:
        return UNKNOWN


def _accessible_from(capacity: CSIStorageCapacity) -> Selector | None:
    """Return the selector of the nodes with access; None if it selects no node, is absent or is invalid."""
    if capacity.node_topology is None:
        return None
    try:
        return compile_selector(capacity.node_topology)
    except FieldError:
        return None
