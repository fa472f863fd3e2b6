"""Compiled node selectors, matched against one node or against many rows.

Each requirement is evaluated for each distinct value of its label once, then gathered by row. Never parses selectors:
that is `podium.objects.selectors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from podium.cluster import Rows, Snapshot
from podium.cluster.matching.lookup import Lookup
from podium.cluster.snapshot import BoolArray
from podium.objects.affinity import NodeSelector
from podium.objects.core import PodSpec
from podium.objects.selectors import (
    NODE_NAME_FIELD,
    NodeMatcher,
    NodeTerm,
    Operator,
    PreferredTerm,
    Requirement,
    compile_node_selector,
    selector_of_labels,
)

_NO_ROW = -1

_LabelTest: TypeAlias = tuple[Requirement, Lookup[str | None, np.bool_]]
_VALUES_MAX: Final = 4
"""The number of values of an In requirement that are looked for by their ids, whatever values the nodes have."""


class RowTerm:
    """One node selector term."""

    def __init__(self, term: NodeTerm) -> None:
        self._term = term
        self._labels = _label_tests(term.expressions)

    def matches(self, labels: Mapping[str, str], node_name: str) -> bool:
        """Return True if a node with this name and these labels matches."""
        return self._term.matches(labels, node_name)

    def matching(self, snapshot: Snapshot, rows: Rows) -> BoolArray:
        """Return which of the rows match. Shape: one entry per row of `rows`."""
        if self._term.broken:
            return np.zeros(len(rows), np.bool_)
        matching = _rows_with_labels(self._labels, snapshot, rows)
        for requirement in self._term.fields:
            matching &= _rows_with_field(requirement, snapshot, rows)
        return matching


class RowSelector:
    """A pod's `nodeSelector` and the terms of its required node affinity (None if it has none)."""

    def __init__(self, labels: Mapping[str, str], matcher: NodeMatcher | None) -> None:
        self._selector = selector_of_labels(labels)
        self._labels = _label_tests(self._selector.requirements)
        self._terms = None if matcher is None else tuple(RowTerm(term) for term in matcher.terms)

    @property
    def everything(self) -> bool:
        """The selector matches every node."""
        return not self._labels and self._terms is None

    def matches(self, labels: Mapping[str, str], node_name: str) -> bool:
        """Return True if a node with this name and these labels matches."""
        if not self._selector.matches(labels):
            return False
        return self._terms is None or any(term.matches(labels, node_name) for term in self._terms)

    def matching(self, snapshot: Snapshot, rows: Rows) -> BoolArray:
        """Return which of the rows match. Shape: one entry per row of `rows`."""
        matching = _rows_with_labels(self._labels, snapshot, rows)
        if self._terms is None:
            return matching
        in_some_term = np.zeros(len(rows), np.bool_)
        for term in self._terms:
            in_some_term |= term.matching(snapshot, rows)
        return matching & in_some_term


@dataclass(frozen=True, slots=True)
class WeightedRowTerm:
    """A preferred term."""

    weight: int
    term: RowTerm


def row_selector(spec: PodSpec) -> RowSelector:
    """Return the node selector and required node affinity of the spec. Invalid terms match no node."""
    node_terms = required_terms(spec)
    return RowSelector(spec.node_selector, None if node_terms is None else compile_node_selector(node_terms))


def required_terms(spec: PodSpec) -> NodeSelector | None:
    """Return the required node affinity of the spec."""
    affinity = spec.affinity
    return affinity.node_affinity.required if affinity is not None and affinity.node_affinity is not None else None


def weighted_row_terms(terms: tuple[PreferredTerm, ...]) -> tuple[WeightedRowTerm, ...]:
    """Return the preferred terms, compiled for matching rows."""
    return tuple(WeightedRowTerm(term.weight, RowTerm(term.term)) for term in terms)


def _label_tests(requirements: tuple[Requirement, ...]) -> tuple[_LabelTest, ...]:
    return tuple((requirement, Lookup(requirement.matches_value, np.bool_)) for requirement in requirements)


def _rows_with_labels(tests: tuple[_LabelTest, ...], snapshot: Snapshot, rows: Rows) -> BoolArray:
    matching = np.ones(len(rows), np.bool_)
    for requirement, lookup in tests:
        column = snapshot.label_column(requirement.key)
        if requirement.operator is Operator.IN and len(requirement.values) <= _VALUES_MAX:
            ids, has_value = column.ids.take(rows), np.zeros(len(rows), np.bool_)
            for value in requirement.values:
                if (value_id := column.id_of(value)) is not None:
                    has_value |= ids == value_id
            matching &= has_value
        else:
            matching &= lookup.over(column.values).take(column.ids.take(rows))
    return matching


def _rows_with_field(requirement: Requirement, snapshot: Snapshot, rows: Rows) -> BoolArray:
    """Return the rows that match a field requirement.

    `metadata.name` is the only field; every other one is the empty string.
    """
    if requirement.key != NODE_NAME_FIELD:
        return np.full(len(rows), requirement.matches_value(""), np.bool_)
    (name,) = requirement.values
    has_name: BoolArray = rows == snapshot.row_of.get(name, _NO_ROW)
    return has_name if requirement.operator is Operator.IN else ~has_name
