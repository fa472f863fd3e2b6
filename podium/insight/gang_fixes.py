"""The search for the smallest sets of edits after which a whole gang fits.

Sets of one edit are tried, then those of two, then those of three. A set is a part that changes members, and a part
that changes other objects:

1. What members ask for is a list of wishes, as for one pod (`pod_edits.Wish`). All members of a template give a wish up
   together, and that counts once. Each combination is tried with the whole gang (`gang_states`), in each topology
   domain.
2. If the combination leaves some of the edits, they follow from a member that then gets no node: `FixSearch` derives
   the sets of edits of nodes, evictions and new nodes with which that member would. A set that places more members and
   is not enough is followed further from the next member that gets no node.
3. Until here a wish is given up altogether. Of a set that is enough the amounts are then made as small as the gang
   allows, by bisection: the largest request, the lowest maxSkew, one more value of the node affinity.
4. If no set of three is enough, the same edit is made to as many nodes as it takes, or as many nodes are added: the
   number is found by bisection. If that is not enough either, the best edits are made one after the other.

A fix is only called a minimum if no smaller set was left out for the limits below.

Cost: for each set an attempt for each member; the attempts are counted, so that the search ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations, islice
from typing import Any, Final, NamedTuple

from podium.engine.cluster import Cluster
from podium.engine.gangs import Gang, GangTrial, try_in_domain
from podium.insight.absent_claims import missing_claims
from podium.insight.edits import INTRUSIVENESS, Edit, EditKind, EditSet, in_order
from podium.insight.gang_states import (
    DOMAINS_MAX,
    GangEdit,
    GangFix,
    GangState,
    is_useless,
    kinds_of,
    members_per_node,
    of_cluster,
    of_members,
    waiting_groups,
)
from podium.insight.new_nodes import another_like
from podium.insight.pod_edits import (
    Wish,
    append_toleration,
    apply_pod_edits,
    contradict,
    lower_request,
    raise_max_skew,
    wishes,
)
from podium.insight.requests import least_request
from podium.insight.search import EDITS_MAX, FixSearch
from podium.lib.time_limit import UNLIMITED, TimeIsUpError, TimeLimit
from podium.objects.core import Pod
from podium.objects.requests import filter_requests
from podium.objects.resource_types import NODES, PODS

_ATTEMPTS_MAX: Final = 20_000
"""How many attempts at members the sets of up to three edits take."""
_REPEATED_MAX: Final = 50
"""How many nodes are edited alike, or added, to make one gang fit."""
_REPEATED_ATTEMPTS_MAX: Final = 10_000
"""How many further attempts the same edits of many nodes take."""
_SETS_MAX: Final = 500
"""How many sets are derived from one member that gets no node."""
_ALIKE_SHOWN: Final = 3
_VARIANTS_MAX: Final = 5


def gang_fixes(
    cluster: Cluster, gang: Gang, fixes_max: int, limit: TimeLimit = UNLIMITED
) -> tuple[bool, list[GangFix]]:
    """Return whether the gang fits as it is, and otherwise the smallest sets of edits after which it does.

    Args:
        limit: when to end with the sets found by then.

    Raises:
        ScheduleError: a plugin failed.
    """
    start = GangState(cluster, gang)
    if start.is_enough:
        return True, []
    return False, _GangSearch(start, fixes_max, limit).fixes()


class _GroupWish(NamedTuple):
    """A wish of the members of a template."""

    group: int
    wish: Wish


class _AttemptsAreOverError(Exception):
    """The search has made as many attempts as it may."""


@dataclass
class _GangSearch:
    """The search for one gang.

    Attributes:
        is_complete: whether no set was left out for a limit.
    """

    start: GangState
    fixes_max: int
    limit: TimeLimit
    is_complete: bool = field(init=False)
    _groups: Sequence[Sequence[Pod]] = field(init=False)
    _wishes: list[_GroupWish] = field(init=False)
    _attempts: int = 0
    _attempts_max: int = _ATTEMPTS_MAX
    _fixes: list[tuple[GangState, bool]] = field(default_factory=list)
    _counts: Counter[tuple[str, ...]] = field(default_factory=Counter)
    _states: dict[frozenset[tuple[int, str]], GangState | None] = field(default_factory=dict)
    """By the wishes that members do without: what a larger set begins with is tried once."""

    def __post_init__(self) -> None:
        """List what the members ask for."""
        self.is_complete = len(self.start.trials) <= DOMAINS_MAX
        self._groups = waiting_groups(self.start.gang)
        snapshot, store = self.start.cluster.engine_to_ask.cache.snapshot(), self.start.cluster.store
        self._wishes = [
            _GroupWish(number, wish)
            for number, (pod, *_) in enumerate(self._groups)
            for wish in (*missing_claims(store, pod), *wishes(pod, snapshot))
        ]

    def fixes(self) -> list[GangFix]:
        """Return the smallest sets, the least intrusive first."""
        try:
            self._search()
        except TimeIsUpError:
            self.limit.is_noticed = True
        ranking = sorted(self._fixes, key=lambda entry: _rank(entry[0]))
        return [GangFix(state.edits, state.best.nodes, is_minimum) for state, is_minimum in ranking[: self.fixes_max]]

    def _search(self) -> None:
        try:
            for size in range(1, EDITS_MAX + 1):
                is_minimum = self.is_complete
                self._search_size(size, is_minimum=is_minimum)
                if self._fixes:
                    break
        except _AttemptsAreOverError:
            self.is_complete = False
        if len(self._fixes) < self.fixes_max:
            self._attempts_max = self._attempts + _REPEATED_ATTEMPTS_MAX
            with suppress(_AttemptsAreOverError):
                self._repeat()
        if not self._fixes:
            self._add_best_edits()

    def _search_size(self, size: int, *, is_minimum: bool) -> None:
        # What changes the members alone is the least intrusive.
        for count in range(size, -1, -1):
            for concessions in combinations(self._wishes, count):
                if len(self._fixes) >= self.fixes_max:
                    return
                if self._contradict(concessions):
                    continue
                state = self._without(concessions)
                if state is None:
                    continue
                if count == size:
                    if state.is_enough and self._is_wanted(state):
                        self._keep(self._reduce(concessions, ()), is_minimum=is_minimum)
                    continue
                for edits in self._sets_beside(state, size - count):
                    self._keep(self._reduce(concessions, edits), is_minimum=is_minimum)

    def _is_wanted(self, state: GangState) -> bool:
        return self._counts[kinds_of(state.edits)] < _ALIKE_SHOWN

    def _keep(self, state: GangState | None, *, is_minimum: bool) -> None:
        if state is not None:
            self._fixes.append((state, is_minimum))
            self._counts[kinds_of(state.edits)] += 1

    # ------------------------------------------------------------ edits of members

    def _contradict(self, concessions: Sequence[_GroupWish]) -> bool:
        numbers = {concession.group for concession in concessions}
        return any(contradict([wish for group, wish in concessions if group == number]) for number in numbers)

    def _without(self, concessions: Sequence[_GroupWish]) -> GangState | None:
        """Return the state in which the members do without these wishes."""
        key = frozenset((group, wish.name) for group, wish in concessions)
        if key not in self._states:
            state = self._state_with([(group, wish.relaxed) for group, wish in concessions], ())
            if state is not None:
                self._spend(len(state.gang.waiting_members) * len(state.trials))
            self._states[key] = state
        return self._states[key]

    def _state_with(self, of_groups: Sequence[tuple[int, Edit]], node_edits: Sequence[Edit]) -> GangState | None:
        """Return the start after these edits of members and of other objects; None if they do not apply."""
        parts: list[GangEdit] = []
        for number, group in enumerate(self._groups):
            pod = group[0]
            for edit in in_order(edit for of_group, edit in of_groups if of_group == number):
                edit_in_turn = append_toleration(pod, edit)
                pod = apply_pod_edits(pod, [edit_in_turn])
                parts.append(of_members(edit_in_turn, group))
        return self.start.after([*parts, *of_cluster(in_order(node_edits))])

    def _spend(self, attempts: int) -> None:
        self.limit.check()
        self._attempts += attempts
        if self._attempts > self._attempts_max:
            raise _AttemptsAreOverError

    # ------------------------------------------------------------ edits of nodes and of other pods

    def _sets_beside(self, state: GangState, count: int) -> Iterator[EditSet]:
        """Yield sets of so many edits of other objects after which the gang fits."""
        keys: set[frozenset[tuple[str, ...]]] = set()
        for trial in state.trials[:DOMAINS_MAX]:
            missing = state.gang.min_count - len(state.gang.placed_members) - len(trial.nodes)
            # No edit lets more members onto a node than an empty one takes.
            if missing <= count * members_per_node(state):
                yield from self._sets_in_domain(state, trial, (), count, keys)

    def _sets_in_domain(
        self,
        state: GangState,
        trial: GangTrial,
        edits: EditSet,
        count: int,
        keys: set[frozenset[tuple[str, ...]]],
    ) -> Iterator[EditSet]:
        """Yield them, with those that were made already.

        Args:
            trial: the outcome in the domain.
            keys: the sets that were tried, by their edits.
        """
        for extra in self._derived_sets(trial, state, count):
            edits_after = (*edits, *extra)
            key = frozenset(edit.identity for edit in edits_after)
            kinds = kinds_of((*state.edits, *of_cluster(extra)))
            if key in keys or (len(extra) == count and self._counts[kinds] >= _ALIKE_SHOWN):
                continue
            keys.add(key)
            successor = state.after(of_cluster(extra))
            if successor is None:
                continue
            self._spend(len(successor.gang.waiting_members))
            outcome = try_in_domain(successor.cluster, successor.gang, trial.selector)
            if len(extra) == count:
                if successor.gang.starts_in(outcome):
                    yield edits_after
            elif not successor.gang.starts_in(outcome) and len(outcome.nodes) > len(trial.nodes):
                yield from self._sets_in_domain(successor, outcome, edits_after, count - len(extra), keys)

    def _derived_sets(self, trial: GangTrial, state: GangState, count: int) -> Iterator[EditSet]:
        """Yield sets of up to so many edits of other objects with which a member that gets no node would get one."""
        members = {member.key for member in state.gang.members}
        for pod in trial.failed_pods:
            if pod.spec.scheduler_name not in state.cluster.profiles:
                continue
            search = FixSearch(trial.world, pod, self.limit)
            for size in range(1, count + 1):
                sets = list(islice(search.sets_beside_pod(size), _SETS_MAX + 1))
                self.is_complete &= len(sets) <= _SETS_MAX and not search.has_left_out
                for edits in sets[:_SETS_MAX]:
                    if not any(is_useless(edit, members, trial, state.cluster) for edit in edits):
                        yield edits

    # ------------------------------------------------------------ amounts

    def _reduce(self, concessions: Sequence[_GroupWish], node_edits: EditSet) -> GangState | None:
        """Return the state in which as little as possible of the wishes is given up."""
        edits = [(group, wish.relaxed) for group, wish in concessions]
        state = self._enough_with(edits, node_edits)
        for number, (group, wish) in enumerate(concessions):
            for edit in self._smaller_edits(state, number, edits, node_edits, self._groups[group][0], wish):
                edits[number] = (group, edit)
            state = self._enough_with(edits, node_edits) or state
        return state

    def _enough_with(self, edits: Sequence[tuple[int, Edit]], node_edits: EditSet) -> GangState | None:
        self.limit.check()
        state = self._state_with(edits, node_edits)
        return state if state is not None and state.is_enough else None

    def _smaller_edits(
        self,
        state: GangState | None,
        number: int,
        edits: Sequence[tuple[int, Edit]],
        node_edits: EditSet,
        pod: Pod,
        wish: Wish,
    ) -> Iterator[Edit]:
        """Yield smaller edits than the one of that number that are enough, the last one the smallest."""

        def is_enough(edit: Edit | None) -> bool:
            if edit is None or not edit.patch:
                return False
            trial_edits = [*edits]
            trial_edits[number] = (edits[number][0], edit)
            return self._enough_with(trial_edits, node_edits) is not None

        if wish.resource:
            request, least = filter_requests(pod.spec)[wish.resource], least_request(pod, wish.resource)
            shares = self._shares(state, wish.resource, len(self._groups[edits[number][0]]))
            amount = _largest(
                [share for share in shares if least < share < request],
                least,
                request,
                lambda total: is_enough(lower_request(pod, wish.resource, total)),
                is_exact=len(self._groups) == 1,
            )
            if amount > least and (edit := lower_request(pod, wish.resource, amount)) is not None:
                yield edit
        elif wish.skew is not None:
            skew = pod.spec.topology_spread_constraints[wish.skew].max_skew
            pods_max = max(skew + 1, len(self.start.cluster.store.objects(PODS)) + 1)
            index = wish.skew
            yield raise_max_skew(
                pod, index, -_largest([], -pods_max, -skew, lambda total: is_enough(raise_max_skew(pod, index, -total)))
            )
        elif wish.edits_for is not None and state is not None:
            names = dict.fromkeys(state.best.nodes.values())
            nodes = [node for name in names if (node := state.cluster.store.get(NODES, name)) is not None]
            variants = {edit.identity: edit for node in nodes for edit in wish.edits_for(node)}
            ranking = sorted(variants.values(), key=lambda edit: INTRUSIVENESS[edit.kind])
            smallest = next((edit for edit in ranking[:_VARIANTS_MAX] if is_enough(edit)), None)
            if smallest is not None:
                yield smallest

    def _shares(self, state: GangState | None, resource: str, count: int) -> Sequence[int]:
        """Return the free capacity of each node in equal parts, the largest first."""
        if state is None:
            return ()
        snapshot = state.cluster.engine_to_ask.cache.snapshot()
        # Only at n equal parts of what some node has free does the number of alike members that fit change.
        free = (snapshot.allocatable(resource) - snapshot.requested(resource))[snapshot.order]
        parts = {int(amount) // number for amount in set(free.tolist()) for number in range(1, count + 1)}
        return sorted(parts, reverse=True)

    # ------------------------------------------------------------ more than three edits

    def _repeat(self) -> None:
        """Make one kind of edits to as many nodes as it takes, or add as many nodes."""
        for trial in self.start.trials[:DOMAINS_MAX]:
            by_kind: dict[EditKind, dict[tuple[str, ...], Edit]] = {}
            for (edit,) in self._derived_sets(trial, self.start, 1):
                by_kind.setdefault(edit.kind, {})[edit.identity] = edit
            for edit in by_kind.pop(EditKind.ADD_NODE, {}).values():
                # Each kind of node is a way of its own.
                if self._counts[EditKind.ADD_NODE.value,] < _ALIKE_SHOWN:
                    self._repeat_one(self._same_nodes(edit), trial)
            for edits in by_kind.values():
                self._repeat_one(list(edits.values())[:_REPEATED_MAX], trial)

    def _same_nodes(self, edit: Edit) -> list[Edit]:
        names, nodes = {node.name for node in self.start.cluster.nodes} | {edit.name}, [edit]
        # Each helps one member at least.
        count = min(_REPEATED_MAX, self.start.gang.min_count)
        while len(nodes) < count and (extra := another_like(self.start.cluster, edit, names)) is not None:
            names.add(extra.name)
            nodes.append(extra)
        return nodes

    def _repeat_one(self, edits: Sequence[Edit], trial: GangTrial) -> None:
        """Keep the shortest beginning of these edits that is enough in the domain, if it is a further fix."""
        kind = edits[0].kind
        if self._counts[kind.value,] >= _ALIKE_SHOWN:
            return

        def state_after(count: int) -> GangState | None:
            self._spend(len(self.start.gang.waiting_members))
            state = self.start.after(of_cluster(in_order(edits[:count])))
            if state is None:
                return None
            outcome = try_in_domain(state.cluster, state.gang, trial.selector)
            return state if state.gang.starts_in(outcome) else None

        high = 1
        while high < len(edits) and state_after(high) is None:
            high *= 2
        low, high = high // 2 + 1, min(high, len(edits))
        while low < high:
            middle = (low + high) // 2
            if state_after(middle) is not None:
                high = middle
            else:
                low = middle + 1
        state = state_after(high)
        if state is not None and (high > EDITS_MAX or not self.is_complete or kind is EditKind.ADD_NODE):
            self._keep_repeated(state, kind)

    def _keep_repeated(self, state: GangState, kind: EditKind) -> None:
        identities = {part.edit.identity for part in state.edits}
        if all({part.edit.identity for part in fix.edits} != identities for fix, _ in self._fixes):
            self._fixes.append((state, False))
            self._counts[kind.value,] += 1

    def _add_best_edits(self) -> None:
        """Make the edits that place most members, one set after the other, until the gang fits."""
        state = self.start
        while len(state.edits) < _REPEATED_MAX:
            search_states = [
                successor
                for trial in state.trials[:1]
                for pod in trial.failed_pods[:1]
                for edits in self._edits_for(state, trial, pod)
                if (successor := state.after(edits)) is not None and len(successor.best.nodes) > len(state.best.nodes)
            ]
            if not search_states:
                return
            state = min(search_states, key=lambda item: (not item.is_enough, -len(item.best.nodes), *_rank(item)))
            self.limit.check()
            if state.is_enough:
                self._fixes.append((state, False))
                return

    def _edits_for(self, state: GangState, trial: GangTrial, pod: Pod) -> Iterator[Sequence[GangEdit]]:
        """Yield the fixes of one member, as edits of all members like it."""
        if pod.spec.scheduler_name not in state.cluster.profiles:
            return
        members = {member.key for member in state.gang.members}
        group = next(group for group in waiting_groups(state.gang) if any(pod.key == member.key for member in group))
        for fix in FixSearch(trial.world, pod, self.limit).fixes(self.fixes_max):
            if not any(is_useless(edit, members, trial, state.cluster) for edit in fix.edits):
                yield [of_members(edit, group) if edit.is_of_pod else GangEdit(edit) for edit in fix.edits]


def _largest(
    candidates: Sequence[int], low: int, high: int, is_enough: Callable[[int], bool], *, is_exact: bool = False
) -> int:
    """Return the largest amount that is enough, where larger ones than such are not.

    Args:
        candidates: amounts that are likely, the largest first.
        low: is enough.
        high: is not.
        is_exact: whether it is one of the candidates, or `low`.
    """
    first, last = 0, len(candidates)
    while first < last:
        middle = (first + last) // 2
        if is_enough(candidates[middle]):
            low, last = candidates[middle], middle
        else:
            high, first = candidates[middle], middle + 1
    while not is_exact and high - low > 1:
        middle = (low + high) // 2
        if is_enough(middle):
            low = middle
        else:
            high = middle
    return low


def _rank(state: GangState) -> tuple[Any, ...]:
    """Return the sort key: few edits come first, then the least intrusive ones, then the smallest."""
    kinds = sorted((INTRUSIVENESS[part.edit.kind] for part in state.edits), reverse=True)
    return (
        len(state.edits),
        kinds,
        sum(part.edit.size for part in state.edits),
        [part.edit.text for part in state.edits],
    )
