"""One case each: the moves against brute force, and a plan that is carried out in the sandbox."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from random import Random
from typing import Final

import anyio

from podium.binder import ApiClient
from podium.client.credentials import load
from podium.client.dispatcher import Dispatcher
from podium.client.session import ApiSession
from podium.insight import Cluster
from podium.insight.room.carrying_out import CarryingOutError, Expectation, MoveCarrier
from podium.insight.room.make_room import STEPS_MAX, make_room
from podium.insight.room.plan import RoomAnswer, Verdict
from podium.lib.system_clock import SystemClock
from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.sandbox.embedded import Sandbox
from tests.make_room.brute_force import TooManyStatesError, fewest_moves
from tests.make_room.clusters import PODS_PER_NODE, USAGES, FullCluster, full_cluster
from tests.make_room.ruled_clusters import ruled_cluster, spread_cluster
from tests.provisioned.sandboxed import at_rest, daemon_beside, run, sandbox_of
from tests.virtual_time import LoopClock

_SMALL: Final = (3, 4, 5, 6)
_TICK_S: Final = 0.1
_KINDS: Final = ("nodes", "priorityclasses", "replicasets", "poddisruptionbudgets", "pods", "namespaces")


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
    clusters = (ruled_cluster(seed * 1_000 + attempt) for attempt in range(1_000))
    return _compare(seed, next(cluster for cluster in clusters if cluster is not None), steps_max, states_max)


def check_spread_moves(seed: int, steps_max: int = 50_000, states_max: int = 100_000) -> CheckedMoves | None:
    """Compare them in the first cluster with topology spread from that seed on; None if it would take too long."""
    return _compare(seed, _any_spread_cluster(seed), steps_max, states_max)


def _any_spread_cluster(seed: int) -> FullCluster:
    clusters = (spread_cluster(seed * 1_000 + attempt) for attempt in range(1_000))
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


@dataclass(slots=True)
class CarriedOut:
    """A plan that was carried out. Attributes: moves: how many; None if there was no plan."""

    seed: int
    moves: int | None = None
    faults: list[str] = field(default_factory=list)


def check_carried_out(seed: int, steps_max: int = 60_000, sizes: tuple[int, ...] = (4, 8)) -> CarriedOut:
    """Make room in a random cluster, and carry the plan out beside the daemon in the sandbox."""
    return _carried_out(seed, any_cluster(seed, sizes), steps_max)


def check_spread_carried_out(seed: int, steps_max: int = 20_000) -> CarriedOut:
    """Do the same in a random cluster with topology spread."""
    return _carried_out(seed, _any_spread_cluster(seed), steps_max)


def _carried_out(seed: int, cluster: FullCluster, steps_max: int) -> CarriedOut:
    checked = CarriedOut(seed)
    run(lambda: _carry_out(cluster, checked, steps_max))
    return checked


async def _carry_out(cluster: FullCluster, checked: CarriedOut, steps_max: int) -> None:
    async with sandbox_of(cluster.objects, controllers=True) as sandbox, daemon_beside(sandbox, checked.seed):
        await at_rest(sandbox)
        objects = [item for kind in _KINDS for item in sandbox.store.list(kind)]
        world = Cluster.load(objects)
        if world.read_pod(cluster.pod).node_name:
            return
        answer = make_room(world, cluster.pod, steps_max=steps_max)
        if answer.plan is None:
            return
        checked.moves = len(answer.plan.steps)
        bound_before = _bound_count(sandbox)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_watch_budgets, sandbox, checked)
            await _run_plan(sandbox, world, answer, checked)
            await at_rest(sandbox)
            tasks.cancel_scope.cancel()
        name = cluster.pod.partition("/")[2]
        pods = {pod["metadata"]["name"]: pod for pod in sandbox.store.list("pods")}
        if not pods[name]["spec"].get("nodeName"):
            checked.faults.append(f"{name} has no node")
        if _bound_count(sandbox) <= bound_before:
            checked.faults.append(f"{_bound_count(sandbox)} pods have a node, as against {bound_before} before")
        if names := [
            node["metadata"]["name"] for node in sandbox.store.list("nodes") if node["spec"].get("unschedulable")
        ]:
            checked.faults.append(f"still cordoned: {names}")


async def _run_plan(sandbox: Sandbox, world: Cluster, answer: RoomAnswer, checked: CarriedOut) -> None:
    assert answer.plan is not None
    clock = LoopClock()
    credentials = await load(None, SystemClock(), master=sandbox.url, environ={})
    async with ApiSession(credentials) as session:
        client = ApiClient(Dispatcher(session, clock), clock)
        carrier = MoveCarrier(session, client, clock, lambda line: None)
        expectation = Expectation.of(world, answer.plan)
        try:
            await carrier.dry_run(answer.plan, expectation)
            await carrier.carry_out(answer.plan, expectation)
        except CarryingOutError as error:
            checked.faults.append(str(error))


async def _watch_budgets(sandbox: Sandbox, checked: CarriedOut) -> None:
    """Note each budget of which at any time fewer pods are ready than it demands, or than were at the start."""
    counts_before = _ready_counts(sandbox)
    while True:
        counts = _ready_counts(sandbox)
        for item in sandbox.store.list("poddisruptionbudgets"):
            name = item["metadata"]["name"]
            replicas = sandbox.store.get("replicasets", name, "default")["spec"]["replicas"]
            least = min(replicas - item["spec"]["maxUnavailable"], counts_before.get(name, 0))
            if counts.get(name, 0) < least:
                checked.faults.append(f"{counts.get(name, 0)} pods of {name} are ready, fewer than {least}")
        await asyncio.sleep(_TICK_S)


def _ready_counts(sandbox: Sandbox) -> dict[str, int]:
    counts: dict[str, int] = {}
    for pod in sandbox.store.list("pods"):
        conditions = {entry["type"]: entry["status"] for entry in pod.get("status", {}).get("conditions", ())}
        if conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]:
            group = pod["metadata"]["labels"]["app"]
            counts[group] = counts.get(group, 0) + 1
    return counts


def _bound_count(sandbox: Sandbox) -> int:
    return sum(bool(pod["spec"].get("nodeName")) for pod in sandbox.store.list("pods"))


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
