"""Answers which pods must move so that a pod or a gang fits, by the fewest moves.

The cluster first comes to rest without the pods in question, as its scheduler would bring it. Then levels of moves are
searched (`search`), each solution is ordered (`sequences`) and rehearsed (`rehearsal`); the first level with moves that
hold is the answer. It is proven if every smaller level has ended without a solution. Among moves of one level the
cheapest is chosen: the fewest bytes, then the lowest priorities, then the fewest restarts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as dataclass_replace
from typing import Final

import numpy as np

from podium.engine.asked_pods import PodLike
from podium.engine.errors import ClusterError
from podium.engine.gangs import Gang, domains_of, gang_of, restrict, try_gang
from podium.framework.contract.status import ScheduleError
from podium.insight.cluster import Cluster
from podium.insight.room.model import Request, RoomModel
from podium.insight.room.movable import Movability
from podium.insight.room.plan import Immovable, RoomAnswer, RoomPlan, Verdict
from podium.insight.room.reachable import ReachableStates
from podium.insight.room.rehearsal import MoveFailedError, Rehearsal, settled_without
from podium.insight.room.search import (
    Budget,
    RoomSearch,
    Solution,
    StepsAreOverError,
    impossible_because,
    size_of,
)
from podium.insight.room.sequences import order_of
from podium.insight.trial import Trial
from podium.lib.nearest import nearest
from podium.lib.time_limit import UNLIMITED, TimeIsUpError, TimeLimit
from podium.objects.core import Pod
from podium.objects.coscheduling import gang_of as coscheduling_gang_of
from podium.objects.pod_groups import group_of
from podium.objects.resource_types import PODS

STEPS_MAX: Final = 2**62
STEPS_WITHOUT_LIMIT: Final = 200_000
"""The steps of a question without a time limit: levels grow exponentially, so that the search may have no end."""

_QUICK_STEPS: Final = 2_000
"""How many steps the levels take before all orders of moves are tried."""
_STATES: Final = 10_000
"""How many states are reached then."""
_LEVEL_STEPS: Final = 20_000
"""How many steps the levels take before any solution is looked for."""
_BROAD: Final = ((4, 2), (8, 2), (8, 4), (16, 3), (16, 6), (24, 10))
"""The moves, and the places of each pod, of one round after the other that looks for any solution."""
_BROAD_STEPS: Final = 15_000
_CHEAPER_STEPS: Final = 5_000
"""How long a level is searched on for a cheaper solution."""
_REHEARSALS_MAX: Final = 20
"""How many solutions of one level are rehearsed."""
_IMMOVABLE_SHOWN: Final = 10


def make_room(cluster: Cluster, pod: PodLike, limit: TimeLimit = UNLIMITED, steps_max: int = STEPS_MAX) -> RoomAnswer:
    """Return the fewest moves after which the pod, or its whole gang, fits. The cluster is not changed.

    Args:
        limit: when to end with the best moves found by then.
        steps_max: after how many steps of the search to end in the same way.

    Raises:
        ClusterError: no profile serves the pod, or it cannot be read.
        ScheduleError: an attempt failed for a reason other than that a pod does not fit.
    """
    world, typed_pod = cluster.asked(pod)
    if typed_pod.node_name:
        return RoomAnswer(typed_pod.key, Verdict.FITS, nodes={typed_pod.key: typed_pod.node_name}, is_proven=True)
    if world.store.get(PODS, typed_pod.key) is None:
        world = world.fork()
        world.put(PODS, typed_pod)
    gang = gang_of(world, typed_pod)
    if gang is not None and len(gang.placed_members) >= gang.min_count:
        gang = None
    question = _RoomQuestion(world, typed_pod, gang, limit, steps_max)
    try:
        return question.answer()
    except (TimeIsUpError, ScheduleError):
        # Whatever interrupts the code of a plugin counts as its failure.
        if not limit.is_over():
            raise
        limit.is_noticed = True
        return RoomAnswer(question.subject, Verdict.UNKNOWN, reason=_LATE, is_partial=True)


def subject_named(cluster: Cluster, name: str) -> Pod:
    """Return the pod of that NAMESPACE/NAME, or a pod of the gang of that name, one that waits if there is one.

    Raises:
        ClusterError: there is neither. The message suggests similar names.
    """
    pods = cluster.store.objects(PODS)
    if (pod := pods.get(name)) is not None:
        return pod
    members = [pod for pod in pods.values() if name in (group_of(pod), coscheduling_gang_of(pod))]
    if not members:
        gangs = {key for pod in pods.values() for key in (group_of(pod), coscheduling_gang_of(pod)) if key}
        raise ClusterError(f"there is no pod and no gang {name}{nearest(name, (*pods, *gangs))}")
    return next((member for member in members if not member.node_name), members[0])


@dataclass
class _RoomQuestion:
    """One question.

    Attributes:
        pods: the pods that have to get a node.
    """

    cluster: Cluster
    pod: Pod
    gang: Gang | None
    limit: TimeLimit
    steps_max: int
    pods: Sequence[Pod] = field(init=False)
    subject: str = field(init=False)

    def __post_init__(self) -> None:
        """Take as many members of a gang as it needs."""
        self.pods, self.subject = [self.pod], self.pod.key
        if self.gang is not None:
            self.subject = f"the gang {self.gang.key}"
            count = self.gang.min_count - len(self.gang.placed_members)
            self.pods = self.gang.waiting_members[:count]

    def answer(self) -> RoomAnswer:
        """Search in the cluster at rest. Raises: TimeIsUpError: the time is over before there is anything to say."""
        obstacle = self._obstacle()
        if obstacle:
            return RoomAnswer(self.subject, Verdict.IMPOSSIBLE, is_proven=True, reason=obstacle)
        world = settled_without(self.cluster, self._waiting_pods(), self.limit)
        if nodes := self._nodes_now(world):
            return RoomAnswer(self.subject, Verdict.FITS, nodes=nodes, is_proven=True)
        trial = Trial(world)
        movability = Movability(
            world.pods, world.admission.objects, frozenset(world.profiles), trial.controllers.expected_pods
        )
        model = RoomModel(world, movability, self.pods)
        search = _Levels(world, model, self._alternatives(world, model), self.limit, self.steps_max)
        answer = search.answer(self.subject)
        return _with_note(answer, self._note(world))

    def _obstacle(self) -> str:
        if self.gang is not None and self.gang.problem:
            return self.gang.problem
        for pod in self.pods:
            if gates := self.cluster.gates_of(pod):
                return f"{pod.key} is held back whatever is free: {'; '.join(gate.message for gate in gates)}"
        return ""

    def _waiting_pods(self) -> Sequence[Pod]:
        return self.pods if self.gang is None else self.gang.waiting_members

    def _nodes_now(self, world: Cluster) -> dict[str, str]:
        """Return the nodes that the pods get without any move; empty if one of them gets none."""
        fork = world.fork()
        for pod in self._waiting_pods():
            fork.put(PODS, pod)
        if self.gang is not None:
            gang = gang_of(fork, self.pod)
            assert gang is not None
            trial = try_gang(fork, gang)
            is_enough = gang.starts_in(trial)
            return dict(trial.nodes) if is_enough else {}
        placement = fork.place_without_preemption(self.pod)
        return {} if placement.node is None else {self.pod.key: placement.node}

    def _alternatives(self, world: Cluster, model: RoomModel) -> list[tuple[Sequence[Pod], Sequence[Request]]]:
        """Return the pods as they may be tried: in each topology domain of their gang, otherwise as they are."""
        if self.gang is None or self.gang.topology_key is None:
            return [(self.pods, model.requests)]
        node_names = {pod.node_name for pod in self.gang.placed_members}
        alternatives: list[tuple[Sequence[Pod], Sequence[Request]]] = []
        for selector in domains_of(world, self.gang.topology_key, node_names):
            pods = [restrict(pod, selector) for pod in self.pods]
            alternatives.append((pods, [model.request(pod) for pod in pods]))
        return alternatives

    def _note(self, world: Cluster) -> str:
        fork = world.fork()
        fork.put(PODS, self.pod)
        try:
            placement = fork.place(self.pod)
        except (ScheduleError, ClusterError):
            return ""
        if placement.nominated_node is None or not placement.victims:
            return ""
        victims = ", ".join(victim.key for victim in placement.victims)
        return (
            f"the scheduler preempts {victims} on {placement.nominated_node} for {self.pod.key} unless the pod's "
            "preemptionPolicy is Never"
        )


_LATE: Final = "not proven within the time limit"


def _with_note(answer: RoomAnswer, note: str) -> RoomAnswer:
    return dataclass_replace(answer, note=note) if note else answer


@dataclass
class _Levels:
    """The search through the levels, with its best moves so far.

    Attributes:
        ruled_out: up to how many moves it is proved that none make room; -1 if not even for none.
        has_unordered: whether moves were found that fit in the end, but have no order. With moves of further pods they
            may have one.
        has_failures: whether moves were rejected in the rehearsal, for reasons that other moves may not meet.
    """

    world: Cluster
    model: RoomModel
    alternatives: Sequence[tuple[Sequence[Pod], Sequence[Request]]]
    limit: TimeLimit
    steps_max: int
    budget: Budget = field(init=False)
    best: RoomPlan | None = None
    ruled_out: int = -1
    has_unordered: bool = False
    has_failures: bool = False
    failure: str = ""
    _level: int = 0
    """The level that is searched next."""
    _searches: list[RoomSearch] = field(init=False)

    def __post_init__(self) -> None:
        """Prepare a search for each alternative."""
        self.budget = Budget(self.limit)
        self._searches = [RoomSearch(self.model, requests, self.budget) for _, requests in self.alternatives]

    def answer(self, subject: str) -> RoomAnswer:
        """Search, and say what was found."""
        reasons = [impossible_because(self.model, requests) for _, requests in self.alternatives]
        if all(reasons):
            return self._as_answer(subject, Verdict.IMPOSSIBLE, is_proven=True, reason=reasons[0])
        try:
            has_ended = self._search()
        except (TimeIsUpError, StepsAreOverError):
            has_ended = False
            self.limit.is_noticed = self.limit.is_over()
        # Read at the end: the rows of further pods are asked for on the way.
        is_exact = self.model.is_exact and not self.has_failures
        if self.best is not None:
            is_proven = self.model.is_exact and self.ruled_out >= self.best.cost.moves - 1
            reason = "" if is_proven else self._shortfall(has_ended)
            return self._as_answer(subject, Verdict.MOVES, is_proven=is_proven, reason=reason)
        if has_ended:
            reason = self.failure or "every way to make room was tried"
            return self._as_answer(subject, Verdict.IMPOSSIBLE, is_proven=is_exact, reason=reason)
        return self._as_answer(subject, Verdict.UNKNOWN, is_proven=False, reason=self._shortfall(has_ended))

    def _shortfall(self, has_ended: bool) -> str:
        if not has_ended and self.has_unordered and not self.limit.is_over() and self.budget.steps < self.steps_max:
            return "not proven: fewer moves fit in the end, but have no order unless further pods move"
        if not has_ended:
            shortfall = _LATE if self.limit.is_over() else "not proven: the search ended after its steps"
            return shortfall + (", best so far" if self.best is not None else "")
        if self.failure:
            return f"not proven: other moves were rejected in the rehearsal, such as: {self.failure}"
        return "not proven: rules between pods, volumes or devices keep pods off nodes, and may change with moves"

    def _as_answer(self, subject: str, verdict: Verdict, *, is_proven: bool, reason: str) -> RoomAnswer:
        return RoomAnswer(
            subject,
            verdict,
            self.best,
            is_proven=is_proven,
            reason=reason,
            ruled_out=self.ruled_out if self.model.is_exact else -1,
            immovable=() if is_proven and self.best is not None else self._immovable(),
            node_count=len(self.model.snapshot),
            movable_count=len(self.model.movable),
            is_partial=self.limit.is_noticed,
        )

    def _immovable(self) -> list[Immovable]:
        """Return pods that stay on nodes that would suit the pods in question, those that take most first."""
        rows = np.logical_or.reduce([request.rows for _, requests in self.alternatives for request in requests])
        pods = [
            (pod, self.model.snapshot.name(row), reason)
            for row in np.flatnonzero(rows).tolist()
            for pod in self.model.snapshot.pods[row].values()
            if (reason := self.model.movability.obstacle(pod))
        ]
        pods.sort(key=lambda entry: (-self.model.size(self.model.need_of(entry[0])), entry[0].key))
        return [Immovable(pod.key, node, reason) for pod, node, reason in pods[:_IMMOVABLE_SHOWN]]

    # ------------------------------------------------------------ the order of the search

    def _search(self) -> bool:
        """Search all levels, and return whether there is nothing left to search."""
        if self._search_levels(_QUICK_STEPS) or self._reach() or self._search_levels(_LEVEL_STEPS):
            return True
        # What the proof has no steps for may still have an answer that is good enough.
        for moves_max, breadth in _BROAD:
            self._look_for_any(moves_max, breadth)
        return self._search_levels(STEPS_MAX)

    def _search_levels(self, steps: int) -> bool:
        """Continue the search by levels for this many steps, and return whether nothing is left to search."""
        self._allow(steps)
        try:
            while not self._is_best(self._level):
                is_cut = self._search_level(self._level)
                if self._is_best(self._level):
                    break
                if not self.has_unordered:
                    self._rule_out(self._level)
                    if not is_cut:
                        return True
                self._level += 1
        except StepsAreOverError:
            self._demand_steps()
            return False
        # Moves without an order may need further moves; whether fewer do is then left to `_reach`.
        return self.best is not None and self.ruled_out >= self.best.cost.moves - 1

    def _is_best(self, level: int) -> bool:
        return self.best is not None and self.best.cost.moves <= level

    def _rule_out(self, level: int) -> None:
        """Note that no moves of this level make room, if it is known of all levels before."""
        if not self.has_failures and self.ruled_out == level - 1:
            self.ruled_out = level

    def _reach(self) -> bool:
        """Try all orders of moves from the cluster as it is, and return whether nothing is left to search."""
        (_, requests), *further_alternatives = self.alternatives
        if further_alternatives or len(requests) > 1:
            return False
        states, level = ReachableStates(self.model, requests[0], self.budget), 0
        if not states.is_small:
            return False
        self._allow(_STATES)
        try:
            while not self._is_best(level):
                # Each has an order by its making.
                orders = [(0, Solution(tuple(sorted(moves)), (row,)), moves) for moves, row in states.solutions()]
                self._rehearse_cheapest(orders)
                if self._is_best(level):
                    break
                self._rule_out(level)
                level += 1
                if not states.advance():
                    break
        except StepsAreOverError:
            self._demand_steps()
            return False
        return True

    def _allow(self, steps: int) -> None:
        self.budget.steps_max = min(self.budget.steps + steps, self.steps_max)

    def _demand_steps(self) -> None:
        if self.budget.steps >= self.steps_max:
            raise StepsAreOverError
        self.limit.check()

    def _search_level(self, level: int) -> bool:
        """Rehearse the solutions of a level, and return whether more moves may lead to further ones."""
        orders: list[tuple[int, Solution, tuple[tuple[int, int], ...]]] = []
        steps_max, is_complete = self.budget.steps_max, True
        try:
            for number, solution, moves in self._ordered_solutions(level):
                # The first one at once, so that there is an answer when the time is up.
                if not orders and self._rehearse(number, solution, moves):
                    self._allow(min(_CHEAPER_STEPS, steps_max - self.budget.steps))
                orders.append((number, solution, moves))
        except StepsAreOverError:
            is_complete = False
        self.budget.steps_max = steps_max
        if self.best is None or self.best.cost.moves == level:
            self._rehearse_cheapest(orders)
        if not is_complete and not self._is_best(level):
            raise StepsAreOverError
        return any(search.is_cut for search in self._searches)

    def _rehearse_cheapest(self, orders: Sequence[tuple[int, Solution, tuple[tuple[int, int], ...]]]) -> None:
        ranking = sorted(orders, key=lambda entry: size_of(entry[2], self.model.movable))
        for number, solution, moves in ranking[:_REHEARSALS_MAX]:
            self.limit.check()
            if self._is_worse(moves) or self._rehearse(number, solution, moves):
                return
        self.has_failures |= len(ranking) > _REHEARSALS_MAX

    def _is_worse(self, moves: Sequence[tuple[int, int]]) -> bool:
        if self.best is None:
            return False
        cost = self.best.cost
        best_cost = cost.moves, cost.requested_bytes, cost.priorities, cost.restarts
        return size_of(moves, self.model.movable) >= best_cost

    def _ordered_solutions(self, level: int) -> Iterator[tuple[int, Solution, tuple[tuple[int, int], ...]]]:
        for number, search in enumerate(self._searches):
            for solution in search.level(level):
                moves = order_of(self.model, solution, self.budget)
                self.has_unordered |= moves is None
                if moves is not None:
                    yield number, solution, moves

    def _look_for_any(self, moves_max: int, breadth: int) -> None:
        """Look for a solution of any size that is better than the best one so far."""
        self._allow(_BROAD_STEPS)
        try:
            for number, search in enumerate(self._searches):
                if self.best is not None:
                    moves_max = min(moves_max, self.best.cost.moves - 1)
                for solution in search.broad(moves_max, breadth):
                    moves = order_of(self.model, solution, self.budget)
                    if moves is None or self._is_worse(moves):
                        continue
                    if self._rehearse(number, solution, moves):
                        break
        except StepsAreOverError:
            self._demand_steps()

    def _rehearse(self, number: int, solution: Solution, moves: Sequence[tuple[int, int]]) -> bool:
        """Rehearse the moves, and return whether they hold; then they are the best so far."""
        pods, _ = self.alternatives[number]
        # Without a limit: what was found in time must not be lost while it is rehearsed.
        rehearsal = Rehearsal(self.world, self.model, pods)
        try:
            self.best = rehearsal.plan(moves, solution.rows)
        except MoveFailedError as error:
            self.has_failures = True
            self.failure = str(error)
            return False
        return True
