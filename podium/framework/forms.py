"""The two forms of filtering and scoring behind one face.

A table plugin answers for many rows at once, a node plugin is run over them one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from podium.cluster import IntArray, Rows, Snapshot
from podium.framework.cycle_state import CycleState
from podium.framework.interface import FilterPlugin, ScorePlugin, TableFilterPlugin, TableScorePlugin
from podium.framework.status import Status, demand_status
from podium.kube.objects import Pod

Explain: TypeAlias = Callable[[int], Status]
"""Verdict → the status it stands for."""


class Filter(Protocol):
    """Judges rows."""

    name: str

    def judge(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> tuple[IntArray, Explain] | None:
        """A verdict for each row, 0 where it passes, and what the others mean; None where all pass."""


class Scorer(Protocol):
    """Scores rows."""

    name: str

    def score(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """A raw score for each row."""

    def normalize(self, state: CycleState, pod: Pod, scores: IntArray) -> IntArray:
        """The scores between 0 and MAX_NODE_SCORE."""


class TableFilter:
    """A filter plugin in table form."""

    def __init__(self, plugin: TableFilterPlugin) -> None:
        self.name = plugin.name
        self._plugin = plugin

    def judge(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> tuple[IntArray, Explain] | None:
        """A verdict for each row."""
        verdicts = self._plugin.filter_rows(state, pod, snapshot, rows)
        if verdicts is None:
            return None
        explain = self._plugin.explain
        return verdicts, lambda verdict: explain(state, pod, verdict).by(self.name)


class NodeFilter:
    """A filter plugin in node form, run over the rows one by one."""

    def __init__(self, plugin: FilterPlugin) -> None:
        self.name = plugin.name
        self._plugin = plugin

    def judge(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> tuple[IntArray, Explain] | None:
        """A verdict for each row: the number of its status among those given."""
        statuses: list[Status] = []
        number_of: dict[tuple[int, tuple[str, ...]], int] = {}
        verdicts = np.zeros(len(rows), np.int64)
        for position, row in enumerate(rows.tolist()):
            status = demand_status(self._plugin.filter(state, pod, snapshot.node(row)))
            if status is None or not status.code:
                continue
            number = number_of.setdefault((status.code, status.all_reasons), len(statuses) + 1)
            if number > len(statuses):
                statuses.append(status.by(self.name))
            verdicts[position] = number
        return (verdicts, lambda verdict: statuses[verdict - 1]) if statuses else None


class TableScorer:
    """A score plugin in table form."""

    def __init__(self, plugin: TableScorePlugin) -> None:
        self.name = plugin.name
        self.normalize = plugin.normalize_scores
        self.score = plugin.score_rows


class NodeScorer:
    """A score plugin in node form, run over the rows one by one."""

    def __init__(self, plugin: ScorePlugin) -> None:
        self.name = plugin.name
        self.normalize = plugin.normalize_scores
        self._plugin = plugin

    def score(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """A raw score for each row."""
        score = self._plugin.score
        return np.array([score(state, pod, snapshot.node(row)) for row in rows.tolist()])


def filter_form(plugin: object) -> Filter | None:
    """The plugin as a filter, in table form where it has both; None where it does not filter."""
    if isinstance(plugin, TableFilterPlugin):
        return TableFilter(plugin)
    return NodeFilter(plugin) if isinstance(plugin, FilterPlugin) else None


def score_form(plugin: object) -> Scorer | None:
    """The plugin as a scorer, in table form where it has both; None where it does not score."""
    if isinstance(plugin, TableScorePlugin):
        return TableScorer(plugin)
    return NodeScorer(plugin) if isinstance(plugin, ScorePlugin) else None


def active(filters: Sequence[Filter], state: CycleState) -> Sequence[Filter]:
    """The filters whose PreFilter did not skip them."""
    skipped = state.skipped_filters
    return [each for each in filters if each.name not in skipped] if skipped else filters
