"""The nodes that a volume can be used on, by its node affinity.

Source: v1.36.2, component-helpers storage/volume/helpers.go (CheckNodeAffinity), v0.36.2: only labels count, never the
fields of a term. In-tree volumes: kubernetes pkg/scheduler/framework/plugins/volumebinding/binder.go.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from podium.cluster import Rows, Snapshot
from podium.cluster.matching.lookup import Lookup
from podium.cluster.snapshot import BoolArray
from podium.framework import contract as fwk
from podium.objects.affinity import NodeSelector
from podium.objects.selectors import NodeTerm, Operator, Requirement, compile_node_selector
from podium.objects.storage import CSINode, PersistentVolume
from podium.plugins.volumes.csi_translation import InTreePlugin, is_migrated_on, plugin_of, translated_affinity

_CACHED_MAX: Final = 16384


class LabelTest:
    """A requirement on a node label.

    One that lists its values is looked up instead of evaluated for every existing value.
    """

    def __init__(self, requirement: Requirement) -> None:
        self.requirement = requirement
        self._lookup = Lookup(requirement.matches_value, np.bool_)

    def matching(self, snapshot: Snapshot, rows: Rows) -> BoolArray:
        """Return which of the rows satisfy it. Shape: one entry per row of `rows`."""
        column = snapshot.label_column(self.requirement.key)
        if self.requirement.operator is not Operator.IN:
            return self._lookup.over(column.values).take(column.ids.take(rows))
        value_ids = [value_id for value in self.requirement.values if (value_id := column.id_of(value)) is not None]
        ids = column.ids.take(rows)
        return ids == value_ids[0] if len(value_ids) == 1 else np.isin(ids, value_ids)


class NodeLabelTerms:
    """Terms on node labels, of which one must match."""

    def __init__(self, selector: NodeSelector) -> None:
        self._terms = tuple(replace(term, fields=()) for term in compile_node_selector(selector).terms)
        self._tests = tuple(_tests(term) for term in self._terms if not term.broken)

    @functools.cached_property
    def only_label(self) -> tuple[str, str] | None:
        """Return the label and its value that are all that is required, as for a volume on one node or in one zone."""
        if len(self._tests) != 1 or len(self._tests[0]) != 1:
            return None
        requirement = self._tests[0][0].requirement
        if requirement.operator is not Operator.IN or len(requirement.values) != 1:
            return None
        return requirement.key, next(iter(requirement.values))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether a node with those labels matches."""
        return any(term.matches(labels, "") for term in self._terms)

    def matching(self, snapshot: Snapshot, rows: Rows) -> BoolArray:
        """Return which of the rows match. Shape: one entry per row of `rows`."""
        is_within = np.zeros(len(rows), np.bool_)
        for tests in self._tests:
            in_term = np.ones(len(rows), np.bool_)
            for test in tests:
                in_term &= test.matching(snapshot, rows)
            is_within |= in_term
        return is_within


def _tests(term: NodeTerm) -> tuple[LabelTest, ...]:
    return tuple(LabelTest(requirement) for requirement in term.expressions)


@functools.lru_cache(maxsize=_CACHED_MAX)
def _label_terms(selector: NodeSelector) -> NodeLabelTerms:
    return NodeLabelTerms(selector)


def node_affinity_of(volume: PersistentVolume) -> NodeLabelTerms | None:
    """Return the volume's own node affinity; None if it can be used on every node."""
    affinity = volume.spec.node_affinity
    return _label_terms(affinity.required) if affinity is not None and affinity.required is not None else None


def _migrated_affinity(plugin: InTreePlugin, volume: PersistentVolume) -> NodeLabelTerms | None:
    selector = translated_affinity(plugin, volume)
    return None if selector is None else _label_terms(selector)


def is_usable_on(volume: PersistentVolume, labels: Mapping[str, str], csi_node: CSINode | None) -> bool:
    """Return whether a node can use the volume; an in-tree one counts as CSI if its plugin is migrated on the node.

    Raises:
        TranslationError: the volume cannot be expressed as a CSI volume.
    """
    plugin = plugin_of(volume)
    is_migrated = plugin is not None and is_migrated_on(plugin, csi_node)
    affinity = _migrated_affinity(plugin, volume) if plugin is not None and is_migrated else node_affinity_of(volume)
    return affinity is None or affinity.matches(labels)


def usable_rows(
    volume: PersistentVolume, snapshot: Snapshot, rows: Rows, csi_nodes: fwk.Lister[CSINode]
) -> BoolArray | None:
    """Return which of the rows can use the volume, as `is_usable_on`; None for all of them.

    Raises:
        TranslationError: the volume cannot be expressed as a CSI volume.

    Shape: one entry per row of `rows`.
    """
    affinity, plugin = node_affinity_of(volume), plugin_of(volume)
    is_within = affinity.matching(snapshot, rows) if affinity is not None else None
    if plugin is None:
        return is_within
    is_migrated = np.array(
        [is_migrated_on(plugin, csi_nodes.get(snapshot.name(row))) for row in rows.tolist()], np.bool_
    )
    if not is_migrated.any():
        return is_within
    affinity = _migrated_affinity(plugin, volume)
    everywhere = np.ones(len(rows), np.bool_)
    is_usable = affinity.matching(snapshot, rows) if affinity is not None else everywhere
    return np.where(is_migrated, is_usable, everywhere if is_within is None else is_within)
