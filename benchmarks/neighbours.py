"""Two schedulers at once: podium and the real kube-scheduler fill the same nodes, each with pods of its own.

What comes of it is held against what a kubelet would do: in the order in which the API server has bound them, it turns
away every pod for which its node has no room left. That pod is put down to who has bound it.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from rich.table import Table

from benchmarks.bound_pods import BoundPods
from benchmarks.cluster import cluster
from benchmarks.endpoints import get, total, wait_ready
from benchmarks.etcd import Etcd, single_put
from benchmarks.measure import StallError
from benchmarks.nodes import CPUS, Json
from benchmarks.pods import SCHEDULER_NAME, pod
from benchmarks.schedulers import RUN_PODIUM, start_kube_scheduler, start_podium
from benchmarks.targets import Check, at_most
from tests.control_plane.client import Client
from tests.control_plane.locate import Binaries
from tests.control_plane.servers import ControlPlane, Scheduler

NODES: Final = 100
FILLED: Final = 0.95
NEIGHBOUR: Final = "neighbour"
FLAGS: Final[Mapping[str, tuple[str, ...]]] = {"off": (), "on": ("--avoid-conflicts",)}
"""Podium's, by what the mitigation is called."""

_CPUS_OF_PODS = (1, 1, 2, 2, 3, 4, 6, 8)
_LEFT_MAX = 0.5
_CACHE = "scheduler_cache_size"
_CONFLICTS = "podium_conflicts_total"
_QUIET_S = 5.0
_WAIT_S_MAX = 300.0
_POLL_S = 0.1
_WRITERS = 2


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure."""

    nodes: int
    repeat: int


@dataclass(frozen=True, slots=True)
class Filled:
    """One filling of the nodes, or the sum of several.

    `turned_away` and `cpus_turned_away` are podium's pods that a kubelet would have turned away, `neighbours_*` those
    of kube-scheduler; `counted` and `neighbours_counted` is what podium's own metric says of nodes overfull by either.
    """

    mitigation: str
    runs: int
    pods: int
    bound: int
    neighbours_bound: int
    turned_away: int
    cpus_turned_away: int
    neighbours_turned_away: int
    counted: int
    neighbours_counted: int


def measure(plan: Plan, binaries: Binaries, tell: Callable[[str], None]) -> Iterator[Filled]:
    """Every filling, as it is done: the same pods without and with the mitigation, others in each repetition."""
    with cluster(binaries, plan.nodes) as plane:
        for number in range(plan.repeat):
            pods = waiting_pods(plan.nodes, Random(number))
            # Whoever comes first runs on a colder server.
            for mitigation in sorted(FLAGS, reverse=number % 2 == 0):
                done = fill(plane, pods, mitigation)
                tell(summary(done))
                yield done


def summary(done: Filled) -> str:
    """One filling in one line."""
    return (
        f"mitigation {done.mitigation}: podium bound {done.bound:,} pods, {done.turned_away} of them in vain "
        f"({done.cpus_turned_away} CPUs), kube-scheduler {done.neighbours_bound:,} and {done.neighbours_turned_away}; "
        f"podium counted {done.counted} and {done.neighbours_counted}"
    )


def waiting_pods(nodes: int, random: Random) -> list[Json]:
    """Pods of several sizes for so much of the nodes, in turn for either scheduler."""
    left, pods = int(nodes * CPUS * FILLED), []
    while left > 0:
        cpus = min(random.choice(_CPUS_OF_PODS), left)
        left -= cpus
        name = (SCHEDULER_NAME, NEIGHBOUR)[len(pods) % 2]
        pods.append(pod(f"pod-{len(pods):05}", name, cpu=str(cpus), memory="100Mi", schedulerName=name))
    return pods


def fill(plane: ControlPlane, pods: Sequence[Json], mitigation: str) -> Filled:
    """Both schedulers are ready, then the pods come. Raises: NotReadyError, StallError."""
    with Etcd(plane.etcd_address) as etcd:
        etcd.delete_all_but_nodes()
    podium = start_podium(plane, command=(*RUN_PODIUM, *FLAGS[mitigation]))
    try:
        neighbour = start_kube_scheduler(plane, {"profiles": [{"schedulerName": NEIGHBOUR}]})
        try:
            wait_ready(podium)
            with BoundPods(plane.url, plane.admin_token, plane.ssl_context()) as bound:
                _create(plane.etcd_address, pods)
                _wait_quiet(bound, (podium, neighbour))
                page = _metrics_up_to_date(podium, bound.count())
        finally:
            neighbour.process.stop()
    finally:
        podium.process.stop()
    by, away = who_bound(asyncio.run(_listed(plane.url, plane.admin_token, plane.ssl_context())))
    return Filled(
        mitigation=mitigation,
        runs=1,
        pods=len(pods),
        bound=by[SCHEDULER_NAME],
        neighbours_bound=by[NEIGHBOUR],
        turned_away=len(away[SCHEDULER_NAME]),
        cpus_turned_away=sum(away[SCHEDULER_NAME]),
        neighbours_turned_away=len(away[NEIGHBOUR]),
        counted=int(total(page, _CONFLICTS, kind="overfull", by="podium")),
        neighbours_counted=int(total(page, _CONFLICTS, kind="overfull", by="others")),
    )


def who_bound(pods: Iterable[Json]) -> tuple[Mapping[str, int], Mapping[str, Sequence[int]]]:
    """By scheduler: how many pods are bound, and the CPUs of each that its node had no room for."""
    taken: dict[str, int] = defaultdict(int)
    bound: dict[str, int] = defaultdict(int)
    away: dict[str, list[int]] = defaultdict(list)
    # The binding is the last that was written of any pod here.
    for each in sorted(pods, key=lambda each: int(each["metadata"]["resourceVersion"])):
        spec = each["spec"]
        if not (node := spec.get("nodeName")):
            continue
        cpus, by = int(spec["containers"][0]["resources"]["requests"]["cpu"]), spec["schedulerName"]
        bound[by] += 1
        if taken[node] + cpus > CPUS:
            away[by].append(cpus)
        else:
            taken[node] += cpus
    return bound, away


async def _listed(url: str, token: str, tls: ssl.SSLContext) -> list[Json]:
    async with Client(url, token=token, tls=tls) as client:
        return await client.list("/api/v1/pods")


def _create(address: str, pods: Sequence[Json]) -> None:
    bodies = [single_put(each) for each in pods]

    def put(share: int) -> None:
        with Etcd(address) as etcd:
            etcd.put_singly(bodies[share::_WRITERS])

    with ThreadPoolExecutor(_WRITERS) as writers:
        list(writers.map(put, range(_WRITERS)))


def _wait_quiet(bound: BoundPods, schedulers: Sequence[Scheduler]) -> None:
    """Until nothing was bound for a while: the last pods may fit nowhere."""
    ends_s, count, since_s = time.monotonic() + _WAIT_S_MAX, 0, time.monotonic()
    while time.monotonic() < min(ends_s, since_s + _QUIET_S):
        for each in schedulers:
            if not each.process.is_running:
                raise StallError(f"{each.process.name} has ended:\n{each.process.log_tail()}")
        if (now := bound.count()) != count:
            count, since_s = now, time.monotonic()
        time.sleep(_POLL_S)


def _metrics_up_to_date(podium: Scheduler, bound: int) -> str:
    """When its watch has shown podium all that was bound. Raises: StallError."""
    ends_s = time.monotonic() + _WAIT_S_MAX
    while time.monotonic() < ends_s:
        page = get(podium, "/metrics")
        if total(page, _CACHE, type="pods") - total(page, _CACHE, type="assumed_pods") == bound:
            return page
        time.sleep(_POLL_S)
    raise StallError(f"podium has not seen all pods bound:\n{podium.process.log_tail()}")


def sums(fillings: Iterable[Filled]) -> list[Filled]:
    """One without the mitigation, one with it: conflicts are too few to take a median of."""
    found: dict[str, Filled] = {}
    for each in fillings:
        known = found.get(each.mitigation)
        found[each.mitigation] = each if known is None else _sum(known, each)
    return list(found.values())


def _sum(one: Filled, other: Filled) -> Filled:
    numbers = [name for name in Filled.__slots__ if name != "mitigation"]
    return replace(one, **{name: getattr(one, name) + getattr(other, name) for name in numbers})


def checks(figures: Iterable[Filled]) -> Iterator[Check]:
    """Whether the mitigation leaves at most half of what podium does wrong without it."""
    found = {each.mitigation: each for each in figures}
    if found.keys() == FLAGS.keys() and found["off"].cpus_turned_away:
        left = found["on"].cpus_turned_away / found["off"].cpus_turned_away
        yield at_most("two schedulers at once: podium's overcommit that is left", left, _LEFT_MAX, "×")


def table(figures: Sequence[Filled]) -> Table:
    """What people read."""
    shown = Table(title=f"{figures[0].runs} fillings to {FILLED:.0%} by two schedulers at once", title_justify="left")
    shown.add_column("mitigation")
    for heading in (
        "pods",
        "podium bound",
        "in vain",
        "CPUs in vain",
        "kube-scheduler bound",
        "in vain",
        "counted by podium: own",
        "others'",
    ):
        shown.add_column(heading, justify="right")
    for each in figures:
        shown.add_row(
            each.mitigation,
            f"{each.pods:,}",
            f"{each.bound:,}",
            f"{each.turned_away:,}",
            f"{each.cpus_turned_away:,}",
            f"{each.neighbours_bound:,}",
            f"{each.neighbours_turned_away:,}",
            f"{each.counted:,}",
            f"{each.neighbours_counted:,}",
        )
    return shown
