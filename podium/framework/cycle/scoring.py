"""Choosing among feasible nodes: PreScore, Score, normalisation, weights, tie-break.

Source: kubernetes v1.36.2, pkg/scheduler/schedule_one.go (prioritizeNodes, selectHost) and
framework/runtime/framework.go (RunScorePlugins).
Differs: `NearBest` exists in podium only; it is used only to avoid conflicts with other schedulers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podium.cluster import IntArray, Rows
from podium.framework.contract.score import MAX_NODE_SCORE
from podium.framework.contract.status import FAILED, MAY_REJECT, Code, ScheduleError, demand_status
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.scored import NONE, Scored
from podium.framework.profile.forms import Scorer, one_integer_each
from podium.framework.profile.pod_signature import PodSignature
from podium.framework.profile.score_history import SmallScores

_PRE_SCORE_MAY: Final = (Code.SKIP, *MAY_REJECT)
_NORMALIZE: Final = "ScoreExtensionNormalize"


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of the feasible nodes. Shape: every array is as long as the list of feasible nodes, in its order.

    `plugins` holds each plugin's normalised score times its weight; a plugin that skipped is absent.
    """

    total: IntArray
    plugins: Mapping[str, IntArray]


def score_nodes(cycle: Cycle, rows: Rows) -> Scores:
    """Score the nodes by every plugin.

    Raises:
        ScheduleError: a plugin failed or scored out of range.
    """
    framework = cycle.framework
    if not framework.scorers:
        # As upstream: without scorers, all nodes are equal with a score of 1.
        return Scores(np.ones(len(rows), np.int64), {})
    signature = _current_signature(cycle)
    cached_scores = signature.scores.all if signature is not None else {}
    _run_pre_score(cycle, rows)
    started_s = framework.clock.monotonic()
    total: IntArray = np.zeros(len(rows), np.int64)
    weighted_scores: dict[str, IntArray] = {}
    raw_scores: dict[str, tuple[int, SmallScores]] = {}
    try:
        for scorer, weight in framework.scorers:
            if scorer.name in cycle.state.skipped_scores:
                continue
            of_all = cached_scores.get(scorer.name)
            # Absolute scores are kept as int8, in which a weighted sum would overflow.
            raw = of_all.raw.take(rows).astype(np.int64) if of_all is not None else None
            scores = _scores(cycle, scorer, rows, raw)
            weighted_scores[scorer.name] = weight * scores
            total += weighted_scores[scorer.name]
            if cycle.keeps_scores:
                raw_scores[scorer.name] = weight, scores.astype(np.int8)
    except ScheduleError:
        framework.observe("Score", FAILED, started_s)
        raise
    cycle.scored_at_s = framework.observe("Score", None, started_s)
    if cycle.keeps_scores:
        # A slice of the snapshot's order costs nothing to keep; other arrays are kept as small as they can be.
        cycle.scored = Scored(rows if rows.base is cycle.snapshot.order else rows.astype(np.uint32), raw_scores)
    return Scores(total, weighted_scores)


def total_scores(cycle: Cycle, rows: Rows) -> IntArray:
    """Return the total scores only; uses cached scores for a pod whose signature is known.

    Raises:
        ScheduleError: as `score_nodes`.

    Shape: one entry per row of `rows`.
    """
    framework, signature = cycle.framework, _current_signature(cycle)
    if signature is None or not framework.scorers:
        return score_nodes(cycle, rows).total
    _run_pre_score(cycle, rows)
    started_s = framework.clock.monotonic()
    cached_scores = signature.scores
    total = cached_scores.total(rows)
    raw_scores: dict[str, tuple[int, SmallScores]] = {}
    try:
        for score in cached_scores.relative:
            scores = _scores(cycle, score.scorer, rows, score.raw.take(rows))
            total += score.weight * scores
            if cycle.keeps_scores:
                raw_scores[score.scorer.name] = score.weight, scores.astype(np.int8)
        for scorer, weight in signature.live_scorers:
            if scorer.name not in cycle.state.skipped_scores:
                scores = _scores(cycle, scorer, rows)
                total += weight * scores
                if cycle.keeps_scores:
                    raw_scores[scorer.name] = weight, scores.astype(np.int8)
    except ScheduleError:
        framework.observe("Score", FAILED, started_s)
        raise
    cycle.scored_at_s = framework.observe("Score", None, started_s)
    if cycle.keeps_scores:
        history = cached_scores.history or cached_scores.remember()
        kept_rows = rows if rows.base is cycle.snapshot.order else rows.astype(np.uint32)
        cycle.scored = Scored(
            kept_rows, raw_scores or NONE, history, history.version, cached_scores.weights, cached_scores.constants
        )
    return total


def _current_signature(cycle: Cycle) -> PodSignature | None:
    signature = cycle.signature
    return signature if signature is not None and signature.has_scores(cycle.pod, cycle.snapshot) else None


def _scores(cycle: Cycle, scorer: Scorer, rows: Rows, raw: IntArray | None = None) -> IntArray:
    """Return one plugin's normalised scores; the raw scores may be given."""
    framework = cycle.framework
    started_s = framework.clock.monotonic()
    point = _NORMALIZE
    if raw is None:
        raw = _raw(cycle, scorer, rows, started_s)
        if framework.measures_plugins:
            started_s = framework.lap(scorer.name, "Score", cycle.pod, started_s)
        else:
            point = "Score"
    normalized = _normalize(cycle, scorer, raw, started_s)
    if scorer.normalizes or not framework.measures_plugins:
        framework.lap(scorer.name, point, cycle.pod, started_s)
    # Checked after normalising, as upstream; raw scores may have any size.
    if int(normalized.min()) < 0 or int(normalized.max()) > MAX_NODE_SCORE:
        raise _out_of_range(cycle, scorer, normalized)
    return normalized


def _raw(cycle: Cycle, scorer: Scorer, rows: Rows, started_s: float) -> IntArray:
    framework, pod = cycle.framework, cycle.pod
    framework.observer.count_evaluations(scorer.name, "Score", framework.name, len(rows))
    try:
        return one_integer_each(scorer.score(cycle.state, pod, cycle.snapshot, rows), len(rows))
    except BaseException as error:
        action = f'running Score plugins: plugin "{scorer.name}" failed with'
        raise framework.plugin_failure(scorer.name, "Score", pod, action, error, started_s) from error


def _normalize(cycle: Cycle, scorer: Scorer, scores: IntArray, started_s: float) -> IntArray:
    pod = cycle.pod
    try:
        return one_integer_each(scorer.normalize(cycle.state, pod, scores), len(scores))
    except BaseException as error:
        action = f'running Normalize on Score plugins: plugin "{scorer.name}" failed with'
        raise cycle.framework.plugin_failure(scorer.name, _NORMALIZE, pod, action, error, started_s) from error


def _run_pre_score(cycle: Cycle, rows: Rows) -> None:
    framework, state, pod, signature = cycle.framework, cycle.state, cycle.pod, cycle.signature
    at_s = started_s = framework.clock.monotonic()
    skipped_names: set[str] = set()
    try:
        for plugin in (
            framework.pre_score if signature is None else signature.pre_scores.carry_out(state, skipped_names)
        ):
            framework.observer.count_evaluations(plugin.name, "PreScore", framework.name)
            try:
                status = demand_status(plugin.pre_score(state, pod, cycle.snapshot, rows), _PRE_SCORE_MAY)
            except BaseException as error:
                action = f'running PreScore plugin "{plugin.name}"'
                raise framework.plugin_failure(plugin.name, "PreScore", pod, action, error, at_s) from error
            at_s = framework.lap(plugin.name, "PreScore", pod, at_s, status)
            if status is not None and status.code is Code.SKIP:
                skipped_names.add(plugin.name)
            elif status is not None:
                raise ScheduleError(f'running PreScore plugin "{plugin.name}": {status.message}')
    except ScheduleError:
        framework.observe("PreScore", FAILED, started_s)
        raise
    state.skipped_scores = frozenset(skipped_names)
    framework.observe("PreScore", None, started_s)


def _out_of_range(cycle: Cycle, scorer: Scorer, scores: IntArray) -> ScheduleError:
    worst = int(scores[(scores < 0) | (scores > MAX_NODE_SCORE)][0])
    error = ScheduleError(
        f'applying score defaultWeights on Score plugins: plugin "{scorer.name}" returns an invalid score {worst}, '
        f"it should in the range of [0, {MAX_NODE_SCORE}] after normalizing"
    )
    cycle.framework.observer.plugin_failed(scorer.name, _NORMALIZE, cycle.pod, error)
    return error


Pick: TypeAlias = Callable[[IntArray], int]
"""Takes the total of each node and returns the position of the chosen one."""


class NearBest:
    """Chooses at random among the nodes whose score is within a margin of the best one.

    Schedulers that all choose the best node conflict on it.
    """

    def __init__(self, random: Random, margin: int) -> None:
        self._random = random
        self._margin = margin

    def __call__(self, total: IntArray) -> int:
        """Return the position of the chosen node."""
        best_positions = np.flatnonzero(total >= total.max() - self._margin)
        return int(best_positions[self._random.randrange(len(best_positions))])


def choose(total: IntArray) -> int:
    """Return the position of the node that wins.

    Upstream makes a binary heap of the list and takes its root, where a parent stays above equal children and the left
    child goes up before an equal right one. So among the best, the one that comes first in a pre-order walk of the
    heap-shaped tree over the list positions wins.
    """
    first = int(total.argmax())
    if first == 0:
        # The heap's root is the first of the best, and then no tie needs to be broken.
        return 0
    best = (total == total[first]).nonzero()[0]
    if len(best) == 1:
        return first
    return int(best[_pre_order(int(best[-1]) + 1)[best].argmin()])


_pre_order_keys: NDArray[np.int64] = np.zeros(0, np.int64)


def _pre_order(count: int) -> NDArray[np.int64]:
    """Return for each position of a heap a number that grows along its pre-order walk.

    The path from the root to position i is written in the binary digits of i + 1 behind the leading one: 0 left,
    1 right. Pre-order is the order of these paths as words, a word before its continuations.
    """
    global _pre_order_keys  # noqa: PLW0603 - a table that only ever grows
    # Kept for later attempts: the walk depends on nothing but the number of nodes.
    if len(_pre_order_keys) < count:
        numbers = np.arange(1, max(count, 1024) * 2, dtype=np.int64)
        lengths = np.frexp(numbers.astype(np.float64))[1].astype(np.int64)
        longest = int(lengths[-1])
        _pre_order_keys = ((numbers << (longest - lengths)) << 6) | lengths
    return _pre_order_keys
