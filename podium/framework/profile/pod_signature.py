"""What is cached for the pods of one spec: the answers of its PreFilter and PreScore plugins, verdicts, and raw scores.

Owns which answers are cached, on which changes they depend, and the rows that are evaluated again. `signature_cache`
owns which pods share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np

from podium.cluster import Rows, Snapshot
from podium.framework.contract.cycle_state import CycleState, cloner
from podium.framework.contract.filter import PreFilterPlugin
from podium.framework.contract.plugin import Plugin, Scope
from podium.framework.contract.score import PreScorePlugin
from podium.framework.contract.status import MAY_REJECT, Code, Status, demand_status
from podium.framework.profile.cached_answers import FEW_ROWS, Asking, CachedFilters, CachedScore, CachedScores
from podium.framework.profile.forms import Filter, Scorer
from podium.framework.profile.nominated_verdicts import NominatedVerdicts, Nominations
from podium.framework.profile.observer import Observer
from podium.framework.profile.outside_changes import OutsideChanges
from podium.objects.core import Pod, PodSpec

P = TypeVar("P", bound=Plugin)
A = TypeVar("A", CachedFilters, CachedScores)

_CACHEABLE: Final = (Code.SKIP, *MAY_REJECT)


class Profile(Protocol):
    """The part of a profile that the cache uses. `profile.runtime.Framework` implements it."""

    observer: Observer

    @property
    def name(self) -> str:
        """The scheduler name."""

    @property
    def pre_filter(self) -> Sequence[PreFilterPlugin]:
        """The PreFilter plugins in order."""

    @property
    def filters(self) -> Sequence[Filter]:
        """The filters in order."""

    @property
    def pre_score(self) -> Sequence[PreScorePlugin]:
        """The PreScore plugins in order."""

    @property
    def scorers(self) -> Sequence[tuple[Scorer, int]]:
        """The scorers in order, with their weights."""

    def scope_of(self, method: Callable[[PodSpec], Scope], plugin: str, pod: Pod) -> Scope:
        """Return the scope of a filter or scorer for the pod."""


class CachedAnswers(Generic[P]):
    """The cached answers of PreFilter or PreScore plugins for every pod of the spec.

    Attributes:
        asked: the plugins that must be called for each pod, in order.
    """

    __slots__ = ("_stretches", "asked")

    def __init__(self) -> None:
        self.asked: list[P] = []
        self._stretches: list[tuple[set[str], list[object]]] = [(set(), [])]
        """What is skipped and written before each plugin that is called, and after the last one."""

    @property
    def skipped_names(self) -> set[str]:
        """The names of the plugins that always return Skip."""
        return set().union(*(skipped_names for skipped_names, _ in self._stretches))

    @property
    def state_values(self) -> list[object]:
        """The values that the plugins that always return Skip or success write to the cycle state."""
        return [value for _, entries in self._stretches for value in entries]

    def ask(self, plugin: P) -> None:
        """Note that the next plugin must be called for each pod."""
        self.asked.append(plugin)
        self._stretches.append((set(), []))

    def note(self, plugin: P, status: Status | None, state_values: Sequence[object]) -> None:
        """Cache the next plugin's answer if it can be reused: success or Skip, and no state that changes."""
        # A state with a cloner changes in dry runs, and one attempt's must not be another's.
        if (status is not None and status.code is not Code.SKIP) or any(map(cloner, map(type, state_values))):
            self.ask(plugin)
            return
        skipped_names, values = self._stretches[-1]
        if status is not None:
            skipped_names.add(plugin.name)
        values += state_values

    def carry_out(self, state: CycleState, skipped_names: set[str]) -> Iterable[P]:
        """Return the plugins to call, in order. The cached effects of the others are applied in between."""
        if self.asked:
            return self._in_turn(state, skipped_names)
        ((skipped_here, values),) = self._stretches
        skipped_names |= skipped_here
        state.write(*values)
        return ()

    def _in_turn(self, state: CycleState, skipped_names: set[str]) -> Iterator[P]:
        for plugin, (skipped_here, values) in zip_longest(self.asked, self._stretches):
            skipped_names |= skipped_here
            state.write(*values)
            if plugin is not None:
                yield plugin


class _Followed(Generic[A]):
    """Cached answers, and up to which changes of the snapshot they are current; a size of 0 stands for no answers."""

    __slots__ = ("answers", "outdated", "seen", "size")

    def __init__(self, *answers: A) -> None:
        self.answers = [*answers]
        self.size = 0
        # The rows whose usage has been another in a fork that was left, beside those that changed since.
        self.outdated: set[int] = set()
        # Of nodes, of pods, and by log of what is outside of the snapshot.
        self.seen: tuple[int, int, tuple[int, ...]] = (0, 0, ())


class PodSignature:
    """The cached answers for the pods of one spec.

    `pre_filters` and `pre_scores` hold the cached answers. `filters` are the filters that are not skipped, with runs
    of cached ones in place of their members; `live_scorers` are the scorers that must be called. `rows_needed` is how
    many rows the last search examined until it had found enough, all of them if it never had: the next one will need
    about as many, and to filter them at once costs less than several times a few.
    """

    def __init__(self, framework: Profile, pod: Pod, spec: PodSpec, snapshot: Snapshot) -> None:
        """Call the plugins for all nodes. The spec is the one whose pods are alike.

        Raises:
            Exception: whatever a plugin raises.
        """
        self.spec = spec
        self.qos_class = pod.status.qos_class
        self.snapshot = snapshot
        self.pre_filters: CachedAnswers[PreFilterPlugin] = CachedAnswers()
        self.pre_scores: CachedAnswers[PreScorePlugin] = CachedAnswers()
        self.filters: list[Filter | CachedFilters] = []
        self.scores = CachedScores()
        self.live_scorers: list[tuple[Scorer, int]] = []
        self.rows_needed = 0
        self._framework = framework
        self._state = CycleState()
        self._filtered: _Followed[CachedFilters] = _Followed()
        self._scored = _Followed(self.scores)
        self._stale: set[int] = set()
        """The rows that were rejected when their node changed, and have not been scored since."""
        self._are_scores_read = self._sees_pods = False
        self._outside = OutsideChanges()
        self._beside_nominated: NominatedVerdicts | None = None
        self._settle(pod)
        self._choose_filters(pod)
        self._choose_scorers(pod)
        self._outside.are_continued(snapshot)
        self._follow([self._filtered], pod)

    def refresh(self, pod: Pod) -> None:
        """Filter the changed rows again, and score them again if the last attempt read scores.

        Raises:
            Exception: whatever a plugin raises.
        """
        if not self._outside.are_continued(self.snapshot):
            self._filtered.size = self._scored.size = 0
        filter_part, score_part = self._filtered, self._scored
        # Only together with the filters: scores that have seen other changes are followed when they are read.
        are_alike = score_part.seen == filter_part.seen and score_part.outdated == filter_part.outdated
        parts: list[_Followed[Any]] = (
            [filter_part, score_part] if self._are_scores_read and score_part.size and are_alike else [filter_part]
        )
        self._are_scores_read = False
        self._follow(parts, pod)

    def has_scores(self, pod: Pod, snapshot: Snapshot) -> bool:
        """Return True if nothing has changed since the last refresh and the cached scores are current.

        If the pod fitted nowhere in the last attempt, the scores are outdated and renewed now; False if a plugin fails.
        """
        filter_part, score_part = self._filtered, self._scored
        log_ends = snapshot.node_changes.end, self._pods_end, self._outside.ends
        # A snapshot that moved on since `refresh`, as during an extender's answer, is scored by the plugins.
        if snapshot is not self.snapshot or filter_part.seen != log_ends or filter_part.outdated:
            return False
        self._are_scores_read = True
        if not score_part.size or score_part.seen != log_ends or score_part.outdated:
            try:
                self._follow([score_part], pod)
            except BaseException:  # noqa: BLE001 - a plugin may raise anything; the attempt meets it again
                score_part.size = 0
                return False
        return True

    def turn_to(self, snapshot: Snapshot) -> None:
        """Make the answers those about another fork of the same original, or about the original itself.

        Rows that had another usage in the fork that is left are evaluated again at the next refresh.
        """
        fork, point = self.snapshot, self.snapshot.fork_point
        self.snapshot = snapshot
        for part in (self._filtered, self._scored):
            if self._sees_pods:
                # The logs of single pods are not numbered alike.
                part.size = 0
            elif point is not None:
                rows = fork.usage_changes.since(point.usage_end)
                nodes_seen, usage_seen, outside_seen = part.seen
                part.seen = nodes_seen, min(usage_seen, point.usage_end), outside_seen
                if rows is None:
                    part.size = 0
                else:
                    part.outdated.update(rows)

    def active_filters(self, skipped_names: frozenset[str]) -> Sequence[Filter | CachedFilters]:
        """Return the filters of one attempt, without those whose PreFilter skipped them in it."""
        if len(self.filters) == len(self._filtered.answers):
            return self.filters  # all of them are runs of cached ones
        return [
            filter_or_run
            for filter_or_run in self.filters
            if isinstance(filter_or_run, CachedFilters) or filter_or_run.name not in skipped_names
        ]

    def beside_nominated(
        self, pod: Pod, nominations: Nominations, count_on: Callable[[Rows], Snapshot]
    ) -> Sequence[CachedFilters] | None:
        """Return the runs of cached filters with their verdicts on rows where nominated pods count; None if not cached.

        All active filters must be cached, and depend on a node and its usage only.

        Args: as `NominatedVerdicts.of`.
        """
        # Forks come and go; and what is outside of the snapshot is followed for the other verdicts only.
        if self.snapshot.is_fork or self._outside.ends:
            return None
        if self._beside_nominated is None:
            self._beside_nominated = NominatedVerdicts(self._filtered.answers)
        try:
            return self._beside_nominated.of(nominations, self.snapshot, count_on, partial(self._asking, pod))
        except BaseException:  # noqa: BLE001 - a plugin may raise anything; the attempt meets it again
            self._beside_nominated = None
            return None

    # ------------------------------------------------------------ which answers are kept

    def _settle(self, pod: Pod) -> None:
        """Call PreFilter and PreScore of the plugins for which they depend on the spec alone, and cache the answers."""
        snapshot = self.snapshot
        for plugin in self._framework.pre_filter:
            if self._framework.scope_of(plugin.filter_scope, plugin.name, pod) is Scope.CLUSTER:
                self.pre_filters.ask(plugin)
                continue
            state = CycleState()
            result, status = plugin.pre_filter(state, pod, snapshot)
            # Narrowed nodes may depend on the cluster, whatever the plugin's scope says.
            if result is None:
                self.pre_filters.note(plugin, demand_status(status, _CACHEABLE), state.values())
            else:
                self.pre_filters.ask(plugin)
        for scoring in self._framework.pre_score:
            if self._framework.scope_of(scoring.score_scope, scoring.name, pod) is Scope.CLUSTER:
                self.pre_scores.ask(scoring)
                continue
            state = CycleState()
            status = scoring.pre_score(state, pod, snapshot, snapshot.order)
            self.pre_scores.note(scoring, demand_status(status, _CACHEABLE), state.values())
        self._state.write(*self.pre_filters.state_values, *self.pre_scores.state_values)

    def _choose_filters(self, pod: Pod) -> None:
        skipped_names, asked_before = self.pre_filters.skipped_names, {plugin.name for plugin in self.pre_filters.asked}
        run: CachedFilters | None = None
        for plugin_filter in self._framework.filters:
            if plugin_filter.name in skipped_names:
                continue
            scope = self._framework.scope_of(plugin_filter.plugin.filter_scope, plugin_filter.name, pod)
            # A filter whose PreFilter is asked each time may read what that wrote.
            if scope is Scope.CLUSTER or plugin_filter.name in asked_before:
                self.filters.append(plugin_filter)
                run = None
                continue
            # Neighbours share one column of verdicts; a live filter between them must keep its place in the order.
            if run is None:
                run = CachedFilters()
                self.filters.append(run)
                self._filtered.answers.append(run)
            run.append(plugin_filter, scope)
            self._note(plugin_filter.plugin, scope)

    def _choose_scorers(self, pod: Pod) -> None:
        skipped_names, asked_before = self.pre_scores.skipped_names, {plugin.name for plugin in self.pre_scores.asked}
        for scorer, weight in self._framework.scorers:
            if scorer.name in skipped_names:
                continue
            scope = self._framework.scope_of(scorer.plugin.score_scope, scorer.name, pod)
            if scope is not Scope.CLUSTER and not self._has_basis(scorer, pod):
                scope = Scope.CLUSTER
            if scope is Scope.CLUSTER or scorer.name in asked_before:
                self.live_scorers.append((scorer, weight))
            else:
                self.scores.append(CachedScore(scorer, weight, scope))
                self._note(scorer.plugin, scope)

    def _note(self, plugin: Plugin, scope: Scope) -> None:
        """Note on which changes the cached answers of a plugin depend."""
        self._sees_pods |= scope is Scope.PODS_ON_NODE
        self._outside.note(plugin, scope)

    def _has_basis(self, scorer: Scorer, pod: Pod) -> bool:
        """Return True if the plugin's `score_basis` returns a hashable value; otherwise its scores are not cached."""
        try:
            hash(scorer.plugin.score_basis(self.spec, self.snapshot))
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
            self._framework.observer.plugin_failed(scorer.name, "ScoreBasis", pod, error)
            return False
        return True

    # ------------------------------------------------------------ looking at rows

    def _asking(self, pod: Pod, snapshot: Snapshot) -> Asking:
        return Asking(self._state, pod, snapshot, self._framework.observer, self._framework.name)

    @property
    def _pods_end(self) -> int:
        log = self.snapshot.pod_counts.changes if self._sees_pods else self.snapshot.usage_changes
        return log.end

    def _pods_since(self, number: int) -> set[int] | None:
        """Return the rows whose usage, or any of whose pods if these matter, changed; None if too much did."""
        if not self._sees_pods:
            return _rows_since(self.snapshot, number)
        changes = self.snapshot.pod_counts.changes.since(number)
        return None if changes is None else {change.row for change in changes}

    def _follow(self, parts: Sequence[_Followed[Any]], pod: Pod) -> None:
        """Call the plugins again for the rows that have changed. All parts have seen the same changes."""
        snapshot, first = self.snapshot, parts[0]
        log_ends = snapshot.node_changes.end, self._pods_end, self._outside.ends
        if first.size and first.seen == log_ends and not first.outdated:
            return
        nodes_seen, pods_seen, outside_seen = first.seen
        nodes, pods = snapshot.node_changes.since(nodes_seen), self._pods_since(pods_seen)
        if outside_seen and first.size and nodes is not None and pods is not None:
            outside = self._outside.since(outside_seen)
            nodes, pods = (None, None) if outside is None else ([*nodes, *outside[0]], pods | outside[1])
        pods = pods if pods is None else pods | first.outdated
        asking, changes_max = self._asking(pod, snapshot), max(len(snapshot) // 2, FEW_ROWS)
        # Beyond half of the rows, one pass over all of them in table form is cheaper.
        if not first.size or nodes is None or pods is None or len(nodes) + len(pods) > changes_max:
            self._look_at_all(parts, asking)
        else:
            if nodes:
                self._resize(parts)
                self._update(parts, asking, set(nodes), Scope.NODE)
                if self._scored in parts:
                    self.scores.update_bases(asking)
            # Nodes that changed were filtered in full above.
            self._update(parts, asking, pods.difference(nodes), Scope.USAGE)
        for part in parts:
            part.seen = log_ends
            if part.outdated:
                part.outdated.clear()

    def _look_at_all(self, parts: Sequence[_Followed[Any]], asking: Asking) -> None:
        self._resize(parts)
        for part in parts:
            for answer in part.answers:
                answer.update(asking, self.snapshot.order, Scope.NODE)
        if self._scored in parts:
            self._stale.clear()
            self.scores.update_bases(asking)
            self.scores.find_uniform(asking)

    def _update(
        self, parts: Sequence[_Followed[Any]], asking: Asking, changed_rows: Iterable[int], scope: Scope
    ) -> None:
        nodes = self.snapshot.nodes
        rows: Sequence[int] = [row for row in changed_rows if nodes[row] is not None]
        for part in parts:
            if part is self._scored:
                rows = self._to_score(asking, rows, scope)
            _update(part, asking, rows, scope)

    def _to_score(self, asking: Asking, changed_rows: Sequence[int], scope: Scope) -> Sequence[int]:
        """Return the rows whose scores may be read. A rejected row is left out until another change makes it pass."""
        passing = changed_rows
        for run in self._filtered.answers:
            passing = run.passing(passing)
        # Scoring rejected nodes would be in vain; they are remembered, for the day that they pass.
        if scope is Scope.NODE:
            self._stale = self._stale.union(changed_rows).difference(passing)
        elif stale_rows := self._stale.intersection(passing):
            _update(self._scored, asking, [*stale_rows], Scope.NODE)
            self._stale -= stale_rows
        return passing

    def _resize(self, parts: Sequence[_Followed[Any]]) -> None:
        size = len(self.snapshot.nodes)
        for part in parts:
            if size != part.size:
                part.size = size
                for answer in part.answers:
                    answer.resize(size)


def _update(part: _Followed[Any], asking: Asking, rows: Sequence[int], scope: Scope) -> None:
    if len(rows) > FEW_ROWS:
        row_array = np.array(rows, np.intp)
        for answer in part.answers:
            answer.update(asking, row_array, scope)
    elif rows:
        nodes = [*map(asking.snapshot.node, rows)]
        for answer in part.answers:
            answer.update_few(asking, nodes, scope)


def _rows_since(snapshot: Snapshot, number: int) -> set[int] | None:
    """Return the rows whose usage changed, in a fork also those before it was forked; None if too much did."""
    point = snapshot.fork_point
    if point is None or number >= point.usage_end:
        rows = snapshot.usage_changes.since(number)
        return None if rows is None else set(rows)
    # What the original changed afterwards is evaluated in vain, but this is rare.
    rows_before, rows = point.original.usage_changes.since(number), snapshot.usage_changes.since(point.usage_end)
    return None if rows_before is None or rows is None else {*rows_before, *rows}
