"""A common interface to the two forms of filtering and scoring.

A plugin in table form is called for many rows at once, a plugin in node form for one row after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeAlias

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.filter import FilterPlugin, TableFilterPlugin
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.score import ScorePlugin, Scoring, TableScorePlugin
from podium.framework.contract.status import PluginError, Status, demand_status, short_repr
from podium.objects.core import Pod

_SCORE_MAX: Final = (1 << 63) - 1

Explain: TypeAlias = Callable[[int], Status]
"""Verdict → the status it stands for."""


class Filter(Protocol):
    """A filter plugin that can be called for many rows or for one node."""

    name: str

    @property
    def plugin(self) -> Plugin:
        """The plugin behind this interface."""

    def filter(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> tuple[IntArray, Explain] | None:
        """Return a verdict for each row, 0 if it passes, and the translation of the others, or None if all pass.

        Shape: one entry per row of `rows`.
        """

    def filter_one(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Return the status of one node, or None if it passes."""


class Scorer(Protocol):
    """A score plugin that can be called for many rows or for one node."""

    name: str
    normalizes: bool

    @property
    def plugin(self) -> Scoring:
        """The plugin behind this interface."""

    def score(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Return a raw score for each row. Shape: one entry per row of `rows`."""

    def score_one(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """Return the raw score of one node."""

    def normalize(self, state: CycleState, pod: Pod, scores: IntArray) -> IntArray:
        """Return the scores normalised to between 0 and MAX_NODE_SCORE. Shape: one entry per feasible node."""


class TableFilter:
    """A filter plugin in table form."""

    def __init__(self, plugin: TableFilterPlugin) -> None:
        self.name = plugin.name
        self.plugin = plugin
        self._in_node_form = plugin.filter if isinstance(plugin, FilterPlugin) else None

    def filter(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> tuple[IntArray, Explain] | None:
        """Return a verdict for each row."""
        verdicts = self.plugin.filter_rows(state, pod, snapshot, rows)
        if verdicts is None:
            return None
        explain = self.plugin.explain
        return verdicts, lambda verdict: _explanation(explain(state, pod, verdict), verdict, self.name)

    def filter_one(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Return the status of one node, by the node form if the plugin has one."""
        # Building arrays for one node takes ten times as long as the node form.
        if self._in_node_form is not None:
            answer = self._in_node_form(state, pod, node)
            return None if answer is None else _with_plugin(demand_status(answer), self.name)
        verdicts = self.plugin.filter_rows(state, pod, node.snapshot, np.array([node.row], np.intp))
        if verdicts is None:
            return None
        verdict = int(one_verdict_each(verdicts, 1)[0])
        return _explanation(self.plugin.explain(state, pod, verdict), verdict, self.name) if verdict else None


class NodeFilter:
    """A filter plugin in node form, run over the rows one by one."""

    def __init__(self, plugin: FilterPlugin) -> None:
        self.name = plugin.name
        self.plugin = plugin

    def filter(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> tuple[IntArray, Explain] | None:
        """Return a verdict for each row: the number of its status among all distinct ones."""
        statuses: list[Status] = []
        number_of: dict[tuple[int, tuple[str, ...]], int] = {}
        verdicts = np.zeros(len(rows), np.int64)
        for position, row in enumerate(rows.tolist()):
            answer = self.plugin.filter(state, pod, snapshot.node(row))
            if answer is None or (status := demand_status(answer)) is None:
                continue
            # Few statuses differ among thousands of nodes, and only those are kept.
            number = number_of.setdefault((status.code, status.all_reasons), len(statuses) + 1)
            if number > len(statuses):
                statuses.append(status.by(self.name))
            verdicts[position] = number
        return (verdicts, lambda verdict: statuses[verdict - 1]) if statuses else None

    def filter_one(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Return the status of one node."""
        answer = self.plugin.filter(state, pod, node)
        return None if answer is None else _with_plugin(demand_status(answer), self.name)


def _with_plugin(status: Status | None, plugin: str) -> Status | None:
    return status.by(plugin) if status is not None else None


def _explanation(answer: object, verdict: int, plugin: str) -> Status:
    status = demand_status(answer)
    if status is None:
        raise PluginError(f"explain answered {short_repr(answer)} for verdict {verdict}, which is not a rejection")
    return status.by(plugin)


class TableScorer:
    """A score plugin in table form."""

    def __init__(self, plugin: TableScorePlugin) -> None:
        self.name = plugin.name
        self.plugin = plugin
        self.normalize = plugin.normalize_scores
        self.normalizes = _normalizes(plugin)
        self.score = plugin.score_rows
        self.score_one = plugin.score if isinstance(plugin, ScorePlugin) else self._score_one

    def _score_one(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return int(one_integer_each(self.score(state, pod, node.snapshot, np.array([node.row], np.intp)), 1)[0])


class NodeScorer:
    """A score plugin in node form, run over the rows one by one."""

    def __init__(self, plugin: ScorePlugin) -> None:
        self.name = plugin.name
        self.plugin = plugin
        self.normalize = plugin.normalize_scores
        self.normalizes = _normalizes(plugin)
        self.score_one = plugin.score

    def score(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Return a raw score for each row."""
        score = self.plugin.score
        scores = [score(state, pod, snapshot.node(row)) for row in rows.tolist()]
        # One check of all types, since almost every plugin returns plain integers.
        if set(map(type, scores)) != {int}:
            scores = [one_integer(score) for score in scores]
        return np.array(scores)


def _normalizes(plugin: Scoring) -> bool:
    """Return True if the plugin has its own `normalize_scores`."""
    return type(plugin).normalize_scores is not Scoring.normalize_scores


def filter_form(plugin: object) -> Filter | None:
    """Return the plugin as a filter, in table form if it has both forms, or None if it does not filter."""
    if isinstance(plugin, TableFilterPlugin):
        return TableFilter(plugin)
    return NodeFilter(plugin) if isinstance(plugin, FilterPlugin) else None


def score_form(plugin: object) -> Scorer | None:
    """Return the plugin as a scorer, in table form if it has both forms, or None if it does not score."""
    if isinstance(plugin, TableScorePlugin):
        return TableScorer(plugin)
    return NodeScorer(plugin) if isinstance(plugin, ScorePlugin) else None


def active(filters: Sequence[Filter], state: CycleState) -> Sequence[Filter]:
    """Return the filters whose PreFilter did not skip them."""
    skipped_names = state.skipped_filters
    return (
        [plugin_filter for plugin_filter in filters if plugin_filter.name not in skipped_names]
        if skipped_names
        else filters
    )


def one_verdict_each(answer: object, count: int) -> IntArray:
    """Check that the verdicts are one integer for each row, as `filter_rows` must return.

    Raises:
        PluginError: the value is anything else.

    Shape: `count` entries.
    """
    if isinstance(answer, np.ndarray) and answer.shape == (count,) and answer.dtype.kind in "iu":
        return answer
    raise PluginError(f"answered {_shape_text(answer)}: verdicts are not one integer for each of the {count} nodes")


def one_integer_each(answer: object, count: int) -> IntArray:
    """Check that the scores are one integer for each row: a fraction must not be truncated silently.

    Raises:
        PluginError: the value is anything else.

    Shape: `count` entries.
    """
    scores = np.asarray(answer)
    # Booleans and floats are refused: their conversion would hide a mistake in the plugin.
    if scores.shape != (count,) or scores.dtype.kind != "i":
        raise PluginError(f"answered {_shape_text(answer)}: scores are not one integer for each of the {count} nodes")
    return scores


def one_integer(answer: object) -> int:
    """Check that the score of one node is an integer, Python's or NumPy's.

    Raises:
        PluginError: the value is anything else.
    """
    if isinstance(answer, int | np.integer) and not isinstance(answer, bool) and -_SCORE_MAX <= answer <= _SCORE_MAX:
        return int(answer)
    raise PluginError(f"answered {short_repr(answer)}: a score is an integer")


def _shape_text(answer: object) -> str:
    if isinstance(answer, np.ndarray):
        return f"an array of {answer.dtype} in the shape of {answer.shape}"
    return short_repr(answer)
