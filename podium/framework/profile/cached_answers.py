"""Verdicts and raw scores by row, cached for one pod signature and refreshed where rows have changed.

Owns the columns: the verdicts of each run of neighbouring filters, the raw scores, and the sum of those scores that do
not depend on which nodes they are compared with. Never decides which plugins' answers may be cached: `signature_cache`
does.

Cost: a changed row costs one call in node form of each plugin whose scope has changed; many changed rows cost one
call in table form. An attempt costs one gather per run of filters, and one for all scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.plugin import Scope
from podium.framework.contract.score import MAX_NODE_SCORE, Scoring
from podium.framework.contract.status import PluginError, Status, failure_text
from podium.framework.profile.forms import Filter, Scorer, one_integer, one_integer_each
from podium.framework.profile.observer import Observer
from podium.framework.profile.rejection import Rejection, rejection_of
from podium.framework.profile.score_history import ScoreHistory, SmallScores
from podium.objects.core import Pod

FEW_ROWS: Final = 4
"""Up to this many changed rows, one call per row in node form is cheaper than one call in table form."""


class Asking(msgspec.Struct, frozen=True):
    """The arguments of plugin calls in one refresh, and what counts them: for the profile, by plugin and row."""

    state: CycleState
    pod: Pod
    snapshot: Snapshot
    observer: Observer
    profile: str


class Meanings:
    """The statuses that cached verdicts stand for, numbered from 1."""

    __slots__ = ("_number_of", "of")

    def __init__(self) -> None:
        self.of: dict[int, Status] = {}
        self._number_of: dict[Status, int] = {}

    def number(self, status: Status) -> int:
        """Return the number of a rejection.

        Raises:
            PluginError: the status is not a rejection.
        """
        # Verdicts as small numbers: a column of integers can be compared in one step.
        number = self._number_of.get(status)
        if number is None:
            if not status.is_rejected:
                raise PluginError(failure_text(status))
            number = self._number_of[status] = len(self.of) + 1
            self.of[number] = status
        return number


# ---------------------------------------------------------------- filters


class _Verdicts:
    """The first rejection by row among neighbouring filters of one scope; 0 if all pass."""

    __slots__ = ("filters", "numbers", "scope")

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.filters: list[Filter] = []
        self.numbers: IntArray = np.zeros(0, np.int64)

    def filter(self, asking: Asking, rows: Rows, meanings: Meanings) -> None:
        # Later filters only see what passed, as their PreFilter may rely on that.
        places: Rows = np.arange(len(rows))
        numbers: IntArray = np.zeros(len(rows), np.int64)
        for plugin_filter in self.filters:
            if not len(places):
                break
            asking.observer.count_evaluations(plugin_filter.name, "Filter", asking.profile, len(places))
            remaining_rows = rows[places]
            outcome = rejection_of(
                remaining_rows, plugin_filter.filter(asking.state, asking.pod, asking.snapshot, remaining_rows)
            )
            if outcome is None:
                continue
            fails, rejection = outcome
            failing = places[fails]
            for verdict, _ in rejection.counts:
                numbers[failing[rejection.verdicts == verdict]] = meanings.number(rejection.meanings[verdict])
            places = places[~fails]
        self.numbers[rows] = numbers

    def filter_few(self, asking: Asking, nodes: Sequence[NodeInfo], meanings: Meanings) -> None:
        state, pod, numbers, remaining_nodes = asking.state, asking.pod, self.numbers, nodes
        for plugin_filter in self.filters:
            if not remaining_nodes:
                break
            asking.observer.count_evaluations(plugin_filter.name, "Filter", asking.profile, len(remaining_nodes))
            feasible: list[NodeInfo] = []
            for node in remaining_nodes:
                status = plugin_filter.filter_one(state, pod, node)
                if status is None:
                    numbers[node.row] = 0
                    feasible.append(node)
                else:
                    numbers[node.row] = meanings.number(status)
            remaining_nodes = feasible


class CachedFilters:
    """A run of neighbouring filters with cached verdicts. It takes the place of the first of them."""

    __slots__ = ("_meanings", "_numbers", "_of_all", "_parts", "_rejections")

    def __init__(self) -> None:
        self._parts: list[_Verdicts] = []
        self._meanings = Meanings()
        self._numbers: IntArray = np.zeros(0, np.int64)
        self._rejections: int | None = 0
        """The number of rejected rows, those of nodes that are gone included; None after a plugin failed."""
        self._of_all: tuple[Rows, Rejection | None] | None = None

    def without_answers(self) -> CachedFilters:
        """Return a run of the same filters, without verdicts."""
        run = CachedFilters()
        for part in self._parts:
            for plugin_filter in part.filters:
                run.append(plugin_filter, part.scope)
        return run

    def append(self, plugin_filter: Filter, scope: Scope) -> None:
        """Append the next filter of the run."""
        # Parts by scope, so that a change of pods runs only the filters that can see it.
        if not self._parts or self._parts[-1].scope is not scope:
            self._parts.append(_Verdicts(scope))
        self._parts[-1].filters.append(plugin_filter)

    def outcome(self, rows: Rows) -> tuple[NDArray[np.bool_], Rejection] | None:
        """Return which of the rows are rejected, and with which statuses; None if all pass.

        Shape: one entry per row of `rows`.
        """
        # Where all nodes pass, no attempt needs to look at each of them.
        if self._rejections == 0:
            return None
        numbers = self._numbers.take(rows)
        fails = numbers != 0
        places = fails.nonzero()[0]
        if not len(places):
            return None
        return fails, Rejection(rows[places], numbers[places], self._meanings.of)

    def rejection_of_all(self, rows: Rows) -> Rejection | None:
        """Return the rejection if none of the rows passes, which is the same one until a node or its pods change."""
        # By their identity: the order of the snapshot, as the rows of a shard, is a new array whenever nodes come or
        # go.
        if self._of_all is None or self._of_all[0] is not rows:
            rejects_all = np.count_nonzero(numbers := self._numbers.take(rows)) == len(rows)
            self._of_all = rows, Rejection(rows, numbers, self._meanings.of) if rejects_all else None
        return self._of_all[1]

    def passing(self, rows: Sequence[int]) -> Sequence[int]:
        """Return the rows that pass."""
        number_of = self._numbers.item
        return [row for row in rows if not number_of(row)]

    def resize(self, size: int) -> None:
        """Make room for more rows."""
        for part in self._parts:
            part.numbers = _grown(part.numbers, size)
        # With a single part its column is the answer, and needs no copy.
        self._numbers = self._parts[0].numbers if len(self._parts) == 1 else _grown(self._numbers, size)

    def update(self, asking: Asking, rows: Rows, change_scope: Scope) -> None:
        """Refresh rows where something in that scope has changed."""
        self._of_all = self._rejections = None
        for part in self._parts:
            if part.scope >= change_scope:
                part.filter(asking, rows, self._meanings)
        if len(self._parts) > 1:
            first = self._parts[-1].numbers[rows]
            # Backwards, so that the first filter that rejects has the last word.
            for part in self._parts[-2::-1]:
                numbers = part.numbers[rows]
                first = np.where(numbers, numbers, first)
            self._numbers[rows] = first
        self._rejections = int(np.count_nonzero(self._numbers))

    def update_few(self, asking: Asking, nodes: Sequence[NodeInfo], change_scope: Scope) -> None:
        """Update the answers node by node; otherwise like `update`."""
        rejections = int(np.count_nonzero(self._numbers)) if self._rejections is None else self._rejections
        if rejections:
            rejections -= self._count_rejected(nodes)
        self._of_all = self._rejections = None
        for part in self._parts:
            if part.scope >= change_scope:
                part.filter_few(asking, nodes, self._meanings)
        if len(self._parts) > 1:
            columns = [part.numbers for part in self._parts]
            for node in nodes:
                self._numbers[node.row] = next((number for column in columns if (number := column[node.row])), 0)
        self._rejections = rejections + self._count_rejected(nodes)

    def _count_rejected(self, nodes: Sequence[NodeInfo]) -> int:
        number_of = self._numbers.item
        return len([node for node in nodes if number_of(node.row)])


# ---------------------------------------------------------------- scorers


class CachedScore:
    """One scorer's raw scores by row. `constant` is the normalised score if all raw scores are equal."""

    __slots__ = ("basis", "constant", "has_basis", "is_absolute", "raw", "scope", "scorer", "uniform", "weight")

    def __init__(self, scorer: Scorer, weight: int, scope: Scope) -> None:
        self.scorer = scorer
        self.weight = weight
        self.scope = scope
        self.raw: NDArray[Any] = np.zeros(0, np.int64)
        self.is_absolute = not scorer.normalizes
        self.has_basis = type(scorer.plugin).score_basis is not Scoring.score_basis
        self.basis: object = None
        self.uniform: int | None = None
        self.constant = 0

    def score(self, asking: Asking, rows: Rows) -> None:
        """Score the rows anew."""
        if not len(rows):
            return
        asking.observer.count_evaluations(self.scorer.name, "Score", asking.profile, len(rows))
        scores = one_integer_each(self.scorer.score(asking.state, asking.pod, asking.snapshot, rows), len(rows))
        least, greatest = int(np.minimum.reduce(scores)), int(np.maximum.reduce(scores))
        # Absolute scores go into small columns, so they are checked here, not after normalising.
        if self.is_absolute:
            _demand_score(least)
            _demand_score(greatest)
        elif least != greatest or least != self.uniform:
            self.uniform = None
        self.raw[rows] = scores

    def score_few(self, asking: Asking, nodes: Sequence[NodeInfo]) -> None:
        """Score the nodes anew, one by one."""
        asking.observer.count_evaluations(self.scorer.name, "Score", asking.profile, len(nodes))
        state, pod, raw, score_one = asking.state, asking.pod, self.raw, self.scorer.score_one
        for node in nodes:
            score = score_one(state, pod, node)
            if type(score) is not int:
                score = one_integer(score)
            if self.is_absolute:
                _demand_score(score)
            elif score != self.uniform:
                self.uniform = None
            raw[node.row] = score

    def find_uniform(self, asking: Asking) -> None:
        """Find out whether all nodes have the same raw score, so that it only needs to be normalised once."""
        # Equal scores need no normalising for each attempt, and most clusters have equal ones for most plugins.
        order = asking.snapshot.order
        if self.is_absolute or not len(order):
            return
        scores = self.raw.take(order)
        self.uniform = int(scores[0]) if (scores == scores[0]).all() else None
        if self.uniform is not None:
            normalized = self.scorer.normalize(asking.state, asking.pod, np.array([self.uniform]))
            self.constant = int(one_integer_each(normalized, 1)[0])
            _demand_score(self.constant)


class CachedScores:
    """The scorers whose raw scores are cached.

    Attributes:
        relative: those whose normalised scores depend on which nodes are compared; all others are summed up by row.
        history: the versions of the table of raw scores; None until it is first read.
        weights: the weights of those that need no normalising; their raw scores are the columns of one table.
        constants: the weighted score of those that score all nodes alike.
    """

    __slots__ = ("_constant", "_level", "_table", "all", "constants", "history", "relative", "weights")

    def __init__(self) -> None:
        self.all: dict[str, CachedScore] = {}
        self.relative: list[CachedScore] = []
        self.weights: dict[str, int] = {}
        self.constants: dict[str, int] = {}
        self._table: SmallScores = np.zeros((0, 0), np.int8)
        self.history: ScoreHistory | None = None
        self._level: IntArray = np.zeros(0, np.int64)
        self._constant = 0

    def append(self, score: CachedScore) -> None:
        """Append the next scorer."""
        self.all[score.scorer.name] = score
        if score.is_absolute:
            self.weights[score.scorer.name] = score.weight

    def total(self, rows: Rows) -> IntArray:
        """Return the weighted sum by row, without the relative ones. Shape: one entry per row of `rows`."""
        total = self._level.take(rows)
        if self._constant:
            total += self._constant
        return total

    def remember(self) -> ScoreHistory:
        """Note every change of the table from now on."""
        self.history = ScoreHistory(self._table)
        return self.history

    def resize(self, size: int) -> None:
        """Make room for more rows."""
        # int8 holds every absolute score, and keeps the table of a large cluster in the processor's cache.
        self._table = np.zeros((size, len(self.weights)), np.int8)
        columns = iter(self._table.T)
        for score in self.all.values():
            column: NDArray[Any] = next(columns) if score.is_absolute else np.zeros(size, np.int64)
            column[: len(score.raw)] = score.raw
            score.raw = column
        self._level = _grown(self._level, size)
        if self.history is not None:
            self.remember()

    def update(self, asking: Asking, rows: Rows, change_scope: Scope) -> None:
        """Refresh rows where something in that scope has changed."""
        for score in self.all.values():
            if score.scope >= change_scope:
                score.score(asking, rows)
        self._take_over(rows)
        self._sort_out()

    def update_few(self, asking: Asking, nodes: Sequence[NodeInfo], change_scope: Scope) -> None:
        """Update the answers node by node; otherwise like `update`."""
        for score in self.all.values():
            if score.scope >= change_scope:
                uniform = score.uniform
                score.score_few(asking, nodes)
                if uniform != score.uniform:
                    self._sort_out()
        weights, history = [*self.weights.values()], self.history
        for node in nodes:
            # Plain Python is faster than NumPy for a row or two.
            row = node.row
            scores = self._table[row].tolist()
            self._level[row] = sum(map(mul, weights, scores))
            if history is not None and not history.note(row, scores):
                history = self.remember()

    def update_bases(self, asking: Asking) -> None:
        """Score all nodes again for each scorer whose basis has changed."""
        for score in self.all.values():
            if score.has_basis:
                basis = score.scorer.plugin.score_basis(asking.pod.spec, asking.snapshot)
                if basis != score.basis:
                    score.basis = basis
                    score.score(asking, asking.snapshot.order)
                    self._take_over(asking.snapshot.order)

    def find_uniform(self, asking: Asking) -> None:
        """Find the scorers whose scores need no normalising, after all nodes are scored."""
        for score in self.all.values():
            score.find_uniform(asking)
        self._sort_out()

    def _take_over(self, rows: Rows) -> None:
        """Sum up the rows' new scores, and note them in the history."""
        scores = self._table.take(rows, axis=0)
        self._level[rows] = scores @ np.array([*self.weights.values()], np.int64)
        if self.history is not None and not self.history.note_all(rows, scores):
            self.remember()

    def _sort_out(self) -> None:
        relative_scores = [score for score in self.all.values() if not score.is_absolute]
        self.relative = [score for score in relative_scores if score.uniform is None]
        uniform = [score for score in relative_scores if score.uniform is not None]
        constants = {score.scorer.name: score.weight * score.constant for score in uniform}
        if constants != self.constants:
            # Recorded attempts share the mapping.
            self.constants = constants
        self._constant = sum(self.constants.values())


def _demand_score(score: int) -> None:
    if not 0 <= score <= MAX_NODE_SCORE:
        raise PluginError(f"score {score} is out of range")


def _grown(column: IntArray, size: int) -> IntArray:
    grown = np.zeros(size, np.int64)
    grown[: len(column)] = column
    return grown
