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
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from rich.table import Table

from benchmarks.bound_pods import BoundPods
from benchmarks.cluster import cluster
from benchmarks.endpoints import get, total, wait_ready
from benchmarks.etcd import Etcd
from benchmarks.etcd_stream import put_each
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


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of the measurement."""

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
                filling = fill(plane, pods, mitigation)
                tell(summary(filling))
                yield filling


def summary(filling: Filled) -> str:
    """One filling in one line."""
    return (
        f"mitigation {filling.mitigation}: podium bound {filling.bound:,} pods, {filling.turned_away} of them in vain "
        f"({filling.cpus_turned_away} CPUs), kube-scheduler {filling.neighbours_bound:,} and "
        f"{filling.neighbours_turned_away}; "
        f"podium counted {filling.counted} and {filling.neighbours_counted}"
    )


def waiting_pods(nodes: int, random: Random) -> list[Json]:
    """Pods of several sizes for so much of the nodes, in turn for either scheduler."""
    cpus_left, pods = int(nodes * CPUS * FILLED), []
    while cpus_left > 0:
        cpus = min(random.choice(_CPUS_OF_PODS), cpus_left)
        cpus_left -= cpus
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
            with BoundPods(plane.url, plane.admin_token, plane.ssl_context()) as bound_pods:
                put_each(plane.etcd_address, pods)
                _wait_quiet(bound_pods, (podium, neighbour))
                page = _metrics_up_to_date(podium, bound_pods.count())
        finally:
            neighbour.process.stop()
    finally:
        podium.process.stop()
    by, away = who_bound(asyncio.run(_list_pods(plane.url, plane.admin_token, plane.ssl_context())))
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
    cpus_by_node: dict[str, int] = defaultdict(int)
    bound_counts: dict[str, int] = defaultdict(int)
    away: dict[str, list[int]] = defaultdict(list)
    # The binding is the last that was written of any pod here.
    for pod_object in sorted(pods, key=lambda pod_object: int(pod_object["metadata"]["resourceVersion"])):
        spec = pod_object["spec"]
        if not (node := spec.get("nodeName")):
            continue
        cpus, by = int(spec["containers"][0]["resources"]["requests"]["cpu"]), spec["schedulerName"]
        bound_counts[by] += 1
        if cpus_by_node[node] + cpus > CPUS:
            away[by].append(cpus)
        else:
            cpus_by_node[node] += cpus
    return bound_counts, away


async def _list_pods(url: str, token: str, tls: ssl.SSLContext) -> list[Json]:
    async with Client(url, token=token, tls=tls) as client:
        return await client.list("/api/v1/pods")


def _wait_quiet(bound_pods: BoundPods, schedulers: Sequence[Scheduler]) -> None:
    """Until nothing was bound for a while: the last pods may fit nowhere."""
    ends_s, count, since_s = time.monotonic() + _WAIT_S_MAX, 0, time.monotonic()
    while time.monotonic() < min(ends_s, since_s + _QUIET_S):
        for scheduler in schedulers:
            if not scheduler.process.is_running:
                raise StallError(f"{scheduler.process.name} has ended:\n{scheduler.process.log_tail()}")
        if (bound_count := bound_pods.count()) != count:
            count, since_s = bound_count, time.monotonic()
        time.sleep(_POLL_S)


def _metrics_up_to_date(podium: Scheduler, bound_count: int) -> str:
    """When its watch has shown podium all that was bound. Raises: StallError."""
    ends_s = time.monotonic() + _WAIT_S_MAX
    while time.monotonic() < ends_s:
        page = get(podium, "/metrics")
        if total(page, _CACHE, type="pods") - total(page, _CACHE, type="assumed_pods") == bound_count:
            return page
        time.sleep(_POLL_S)
    raise StallError(f"podium has not seen all pods bound:\n{podium.process.log_tail()}")


def sums(fillings: Iterable[Filled]) -> list[Filled]:
    """One without the mitigation, one with it: conflicts are too few to take a median of."""
    sum_by_mitigation: dict[str, Filled] = {}
    for filling in fillings:
        former = sum_by_mitigation.get(filling.mitigation)
        sum_by_mitigation[filling.mitigation] = filling if former is None else _sum(former, filling)
    return list(sum_by_mitigation.values())


def _sum(first: Filled, second: Filled) -> Filled:
    numbers = [name for name in Filled.__slots__ if name != "mitigation"]
    return replace(first, **{name: getattr(first, name) + getattr(second, name) for name in numbers})


def checks(figures: Iterable[Filled]) -> Iterator[Check]:
    """Check that the mitigation leaves at most half of what podium does wrong without it."""
    figure_by_mitigation = {figure.mitigation: figure for figure in figures}
    if figure_by_mitigation.keys() == FLAGS.keys() and figure_by_mitigation["off"].cpus_turned_away:
        share_left = figure_by_mitigation["on"].cpus_turned_away / figure_by_mitigation["off"].cpus_turned_away
        yield at_most("two schedulers at once: podium's overcommit that is left", share_left, _LEFT_MAX, "×")


def table(figures: Sequence[Filled]) -> Table:
    rich_table = Table(
        title=f"{figures[0].runs} fillings to {FILLED:.0%} by two schedulers at once", title_justify="left"
    )
    rich_table.add_column("mitigation")
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
        rich_table.add_column(heading, justify="right")
    for figure in figures:
        rich_table.add_row(
            figure.mitigation,
            f"{figure.pods:,}",
            f"{figure.bound:,}",
            f"{figure.turned_away:,}",
            f"{figure.cpus_turned_away:,}",
            f"{figure.neighbours_bound:,}",
            f"{figure.neighbours_turned_away:,}",
            f"{figure.counted:,}",
            f"{figure.neighbours_counted:,}",
        )
    return rich_table
