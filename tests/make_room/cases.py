"""One case each: the moves against brute force, and a plan that is carried out in the sandbox."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from podium.insight import Cluster
from podium.insight.room.make_room import STEPS_MAX, make_room
from podium.insight.room.plan import RoomAnswer, Verdict
from podium.lib.system_clock import SystemClock
from podium.lib.time_limit import UNLIMITED, TimeLimit
from tests.make_room.brute_force import TooManyStatesError, fewest_moves
from tests.make_room.carried_out import CarriedOut, carried_out
from tests.make_room.clusters import NODES, PODS_PER_NODE, USAGES, FullCluster, full_cluster
from tests.make_room.ruled_clusters import ruled_cluster, spread_cluster

_SMALL: Final = (3, 4, 5, 6)
_SHAPES: Final = [(nodes, pods, usage) for nodes in NODES for pods in PODS_PER_NODE for usage in USAGES]
_SEEDS_MAX: Final = 200


@dataclass(slots=True)
class CheckedMoves:
    """A small cluster and what was found.

    Attributes:
        fewest: by brute force; None if there are no moves.
        faults: what is wrong.
    """

    seed: int
    moves: int | None = None
    fewest: int | None = None
    is_proven: bool = False
    faults: list[str] = field(default_factory=list)


def any_cluster(seed: int, sizes: tuple[int, ...], *, has_one_pending: bool = False) -> FullCluster:
    """The first cluster with a pending pod from that seed on, of a random shape."""
    random = Random(seed)
    for attempt in range(1_000):
        shape = random.choice(sizes), random.choice(PODS_PER_NODE), random.choice(USAGES)
        cluster = full_cluster(seed * 1_000 + attempt, *shape, has_one_pending=has_one_pending)
        if cluster is not None:
            return cluster
    raise AssertionError(f"seed {seed}: all pods find a node")


def answer_for(cluster: FullCluster, limit: TimeLimit = UNLIMITED, steps_max: int = STEPS_MAX) -> RoomAnswer:
    """Make room for the pod of the cluster."""
    return make_room(Cluster.load(cluster.objects), cluster.pod, limit, steps_max)


def check_moves(seed: int, steps_max: int = 200_000, states_max: int = 100_000) -> CheckedMoves | None:
    """Compare the fewest moves with brute force; None if it would take too long."""
    return _compare(seed, any_cluster(seed, _SMALL, has_one_pending=True), steps_max, states_max)


def check_ruled_moves(seed: int, steps_max: int = 50_000, states_max: int = 100_000) -> CheckedMoves | None:
    """Compare them in the first cluster with devices and zones from that seed on; None if it would take too long."""
    return _compare(seed, _any_of(ruled_cluster, seed), steps_max, states_max)


def check_spread_moves(seed: int, steps_max: int = 50_000, states_max: int = 100_000) -> CheckedMoves | None:
    """Compare them in the first cluster with topology spread from that seed on; None if it would take too long."""
    return _compare(seed, _any_of(spread_cluster, seed), steps_max, states_max)


def _any_of(make: Callable[[int], FullCluster | None], seed: int) -> FullCluster:
    clusters = (make(seed * 1_000 + attempt) for attempt in range(1_000))
    return next(cluster for cluster in clusters if cluster is not None)


def _compare(seed: int, cluster: FullCluster, steps_max: int, states_max: int) -> CheckedMoves | None:
    answer = answer_for(cluster, steps_max=steps_max)
    checked = CheckedMoves(seed, is_proven=answer.is_proven)
    checked.moves = len(answer.plan.steps) if answer.plan is not None else None
    try:
        # If nothing is found, brute force looks as far as it can.
        checked.fewest = fewest_moves(cluster, states_max, 99 if checked.moves is None else checked.moves)
    except TooManyStatesError:
        return None
    if checked.moves != checked.fewest:
        checked.faults.append(f"{checked.moves} moves, by brute force {checked.fewest}: {answer.text}")
    if checked.fewest is None and answer.verdict is not Verdict.IMPOSSIBLE:
        checked.faults.append(f"there are no moves: {answer.text}")
    return checked


def check_carried_out(seed: int, steps_max: int = 60_000, sizes: tuple[int, ...] = (4, 8)) -> CarriedOut:
    """Make room in a random cluster, and carry the plan out beside the daemon in the sandbox."""
    return carried_out(seed, any_cluster(seed, sizes), steps_max)


def check_ruled_carried_out(seed: int, steps_max: int = 20_000) -> CarriedOut:
    """Do the same in a random cluster with devices and zones."""
    return carried_out(seed, _any_of(ruled_cluster, seed), steps_max)


def check_spread_carried_out(seed: int, steps_max: int = 20_000) -> CarriedOut:
    """Do the same in a random cluster with topology spread."""
    return carried_out(seed, _any_of(spread_cluster, seed), steps_max)


def check_recipe_carried_out(number: int, first: int, steps_max: int = 100_000) -> CarriedOut | None:
    """Do the same in the cluster of that number of the whole recipe, see `cluster_of_recipe`."""
    named_cluster = cluster_of_recipe(number, first)
    return None if named_cluster is None else carried_out(number, named_cluster[1], steps_max, named_cluster[0])


def cluster_of_recipe(number: int, first: int) -> tuple[str, FullCluster] | None:
    """The cluster of that number, with a name that says its shape: the shapes take turns.

    None if none of many seeds from the first one on has a pending pod.
    """
    nodes, pods, usage = _SHAPES[number % len(_SHAPES)]
    start = first + number * _SEEDS_MAX
    clusters = (full_cluster(seed, nodes, pods, usage) for seed in range(start, start + _SEEDS_MAX))
    cluster = next((entry for entry in clusters if entry is not None), None)
    return None if cluster is None else (f"{nodes} nodes, {pods} pods each, {usage:.0%}", cluster)


@dataclass(slots=True)
class TimedAnswer:
    """The answer within a time."""

    name: str
    seconds: float
    verdict: Verdict
    is_proven: bool
    moves: int | None


class _CpuClock(SystemClock):
    """The CPU time of this process, which has one thread: other processes take none of a time limit by it."""

    monotonic = staticmethod(time.process_time)


def timed_answer(cluster: FullCluster, name: str, seconds: float) -> TimedAnswer:
    """Make room within so many seconds of this process's CPU time."""
    world, clock = Cluster.load(cluster.objects), _CpuClock()
    started_s = clock.monotonic()
    answer = make_room(world, cluster.pod, TimeLimit(clock, seconds))
    moves = len(answer.plan.steps) if answer.plan is not None else None
    return TimedAnswer(name, clock.monotonic() - started_s, answer.verdict, answer.is_proven, moves)
