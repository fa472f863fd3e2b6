"""One, two and three members of a group of shards on the light API server: what dividing the nodes gains and costs.

Where fewer cores than members are free, the rate by the clock shows the machine. So the CPU time of the busiest member
is reported beside it: with a core for each member and one for the server, that member would be the limit.
"""

from __future__ import annotations

import statistics
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.table import Table

from benchmarks.burst import Reading, wait_bound
from benchmarks.endpoints import get, total, wait_ready
from benchmarks.light_server import LightServer
from benchmarks.measure import StallError
from benchmarks.nodes import node
from benchmarks.pods import HOSTNAME, SCHEDULER_NAME
from benchmarks.processor_time import noise, wait_quiet
from benchmarks.schedulers import PODIUM_COMMAND, start_podium
from benchmarks.targets import Check, at_least, at_most
from benchmarks.workloads import WORKLOADS
from podium.shards import MemberLease
from tests.control_plane.processes import ServerProcess, free_ports
from tests.control_plane.servers import Scheduler

MEMBERS: Final = (1, 2, 3)
NODES: Final = 5_000
PODS: Final = 5_000
_GROUP: Final = "bench"
_WARM_UP: Final = 400
_COMPARED: Final = 200
"""Pods that a shadow compares with its own decisions, created a few at a time."""
_BATCH: Final = 10
_RATIO_MIN: Final = 2.5
_CONFLICTS_MAX: Final = 0.001
_LEASES: Final = "/apis/coordination.k8s.io/v1/leases"
_DIVIDED_S_MAX: Final = 120.0
_TAKE_OVER_S: Final = 4.0
"""From the last announcement in a Lease until its member acts by it, in seconds."""
_POLL_S: Final = 0.1
_PASSED_ON: Final = "podium_shard_pods_passed_on_total"
_VERDICTS: Final = "podium_shadow_pods_compared_total"
_SAME: Final = ("same node", "same score")


@dataclass(frozen=True, slots=True)
class DividedBurst:
    """Pods created at once, which the members of a group divide.

    Attributes:
        waits_s: of each pod from its creation until it was bound, as the server saw it.
        cpu_s: of each member from the creation until it is quiet.
        conflicts: bindings that the server refused, as the pod was bound.
        passed_on: pods that fitted nowhere in a shard and went to the next one.
        compared_count, elsewhere_count: the pods compared afterwards, and those that one scheduler of all nodes would
            have placed on a node of a higher score.
        server_cores: of the light server until the last pod was bound.
        others_cores: of other processes meanwhile: noise.
    """

    members: int
    nodes: int
    waits_s: list[float]
    cpu_s: list[float]
    conflicts: int
    passed_on: int
    compared_count: int
    elsewhere_count: int
    server_cores: float
    others_cores: float

    @property
    def pods_per_s(self) -> float:
        """Until the last pod was bound."""
        return len(self.waits_s) / max(self.waits_s)

    @property
    def pods_per_cpu_s(self) -> float:
        """Pods of the group per CPU second of its busiest member."""
        return len(self.waits_s) / max(self.cpu_s)


@dataclass(frozen=True, slots=True)
class Figures:
    """The medians of the bursts with so many members, each figure on its own; conflicts are the most."""

    members: int
    nodes: int
    pods: int
    pods_per_s: float
    p99_s: float
    pods_per_cpu_s: float
    cpu_ms_per_pod: float
    conflict_share: float
    passed_on_share: float
    elsewhere_share: float
    server_cores: float
    others_cores: float


def measure(nodes: int, pods: int, repeat: int, binary: Path, tell: Callable[[str], None]) -> Iterator[DividedBurst]:
    """Yield each burst as it is done. Raises: StallError, StartError, NotReadyError."""
    for members in MEMBERS:
        for _ in range(repeat):
            burst = _burst(members, nodes, pods, binary)
            tell(
                f"{_about(members)}, {nodes:,} nodes: {burst.pods_per_s:,.0f} pods/s, "
                f"{burst.pods_per_cpu_s:,.0f} pods per CPU second of the busiest member"
            )
            yield burst


def _burst(members: int, nodes: int, pods: int, binary: Path) -> DividedBurst:
    workload = WORKLOADS["plain"]
    with LightServer(binary) as server, ExitStack() as stack:
        server.create(map(node, range(nodes)))
        schedulers = [_start_member(server, f"m{number}") for number in range(1, members + 1)]
        processes = [scheduler.process for scheduler in schedulers]
        for process in processes:
            stack.callback(process.stop)
        for scheduler in schedulers:
            wait_ready(scheduler)
        _wait_divided(server, members)
        server.create(map(workload.pod, range(pods, pods + _WARM_UP)))
        wait_bound(server, processes, _WARM_UP)
        _wait_all_quiet(processes)
        first = Reading(processes, server)
        server.create(map(workload.pod, range(pods)))
        wait_bound(server, processes, _WARM_UP + pods)
        last = Reading(processes, server)
        _wait_all_quiet(processes)
        cpu_s = [process.cpu_s() - spent_s for process, spent_s in zip(processes, first.podiums_s, strict=True)]
        statistics_of_burst = server.statistics()
        passed_on = sum(int(total(get(member, "/metrics"), _PASSED_ON)) for member in schedulers)
        numbers = range(pods + _WARM_UP, pods + _WARM_UP + _COMPARED)
        compared_count, elsewhere_count = _compare(server, processes, numbers)
    return DividedBurst(
        members=members,
        nodes=nodes,
        waits_s=(statistics_of_burst.waits_s or [])[_WARM_UP:],
        cpu_s=cpu_s,
        conflicts=statistics_of_burst.counts.get("conflicts", 0),
        passed_on=passed_on,
        compared_count=compared_count,
        elsewhere_count=elsewhere_count,
        server_cores=last.server_cores_since(first),
        others_cores=last.others_cores_since(first),
    )


def _start_member(server: LightServer, member: str) -> Scheduler:
    flags = ["--shards", _GROUP, "--shard-member", member, "--shard-key", HOSTNAME]
    return start_podium(server, {"leaderElection": {"leaderElect": True}}, flags)


def _wait_divided(server: LightServer, members: int) -> None:
    """Poll the Leases until all members act by the view that has all of them. Raises: StallError."""
    view = frozenset(f"m{number}" for number in range(1, members + 1))
    deadline_s = time.monotonic() + _DIVIDED_S_MAX
    while sum(MemberLease.of(item).announcement.views == (view,) for item in server.objects(_LEASES)) < members:
        if time.monotonic() > deadline_s:
            raise StallError(f"{_about(members)} have not divided the nodes: {server.objects(_LEASES)}")
        time.sleep(_POLL_S)
    time.sleep(_TAKE_OVER_S)


def _wait_all_quiet(processes: Iterable[ServerProcess]) -> None:
    for process in processes:
        wait_quiet(process)


def _compare(server: LightServer, processes: Sequence[ServerProcess], numbers: range) -> tuple[int, int]:
    """Return how many of these pods a shadow has compared, and how many it would have placed elsewhere."""
    port = free_ports(1)[0]
    command = ["shadow", "--scheduler", SCHEDULER_NAME, "--kubeconfig", str(server.kubeconfig())]
    addresses = [f"--metrics-bind-address=127.0.0.1:{port}"]
    log = server.directory / "shadow.log"
    shadow = ServerProcess("podium shadow", [*PODIUM_COMMAND, *command, *addresses], log)
    try:
        shadow.wait_ready(lambda: _page(port) is not None)
        # Its informers have then what was there before.
        wait_quiet(shadow)
        bound_before = len(server.statistics().waits_s or [])
        for start in range(0, len(numbers), _BATCH):
            batch = numbers[start : start + _BATCH]
            server.create(map(WORKLOADS["plain"].pod, batch))
            bound_before += len(batch)
            wait_bound(server, processes, bound_before)
        wait_quiet(shadow)
        page = _page(port) or ""
    finally:
        shadow.stop()
    compared_count = total(page, _VERDICTS)
    return int(compared_count), int(compared_count - sum(total(page, _VERDICTS, verdict=verdict) for verdict in _SAME))


def _page(port: int) -> str | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10.0) as answer:
            content: bytes = answer.read()
            return content.decode()
    except OSError:
        return None


def _about(members: int) -> str:
    return f"{members} member{'s' if members > 1 else ''}"


def medians(bursts: Iterable[DividedBurst]) -> list[Figures]:
    """Return one row for each number of members, in the order of their first bursts."""
    groups: dict[tuple[int, int, int], list[DividedBurst]] = {}
    for burst in bursts:
        groups.setdefault((burst.members, burst.nodes, len(burst.waits_s)), []).append(burst)
    return [_figures(*size, group) for size, group in groups.items()]


def _figures(members: int, nodes: int, pods: int, bursts: Sequence[DividedBurst]) -> Figures:
    def middle(figure: Callable[[DividedBurst], float]) -> float:
        return statistics.median(map(figure, bursts))

    return Figures(
        members=members,
        nodes=nodes,
        pods=pods,
        pods_per_s=middle(lambda burst: burst.pods_per_s),
        p99_s=middle(lambda burst: statistics.quantiles(burst.waits_s, n=100)[98]),
        pods_per_cpu_s=middle(lambda burst: burst.pods_per_cpu_s),
        cpu_ms_per_pod=middle(lambda burst: sum(burst.cpu_s) / pods * 1e3),
        conflict_share=max(burst.conflicts / pods for burst in bursts),
        passed_on_share=middle(lambda burst: burst.passed_on / pods),
        elsewhere_share=middle(lambda burst: burst.elsewhere_count / max(1, burst.compared_count)),
        server_cores=middle(lambda burst: burst.server_cores),
        others_cores=middle(lambda burst: burst.others_cores),
    )


def checks(figures: Sequence[Figures]) -> Iterator[Check]:
    """Check the gain of the most members over one, and the conflicts of every group."""
    by_members = {figure.members: figure for figure in figures}
    single, largest = by_members.get(1), by_members[max(by_members)]
    if single is not None and largest.members > 1:
        about = f"{_about(largest.members)} against one"
        yield at_least(f"{about}: pods/s", largest.pods_per_s / single.pods_per_s, _RATIO_MIN, "×")
        cpu_ratio = largest.pods_per_cpu_s / single.pods_per_cpu_s
        yield at_least(f"{about}: pods per CPU second of the busiest member", cpu_ratio, _RATIO_MIN, "×")
    for figure in figures:
        share = 100.0 * figure.conflict_share
        yield at_most(f"{_about(figure.members)}: conflicts", share, 100.0 * _CONFLICTS_MAX, " % of pods")


def notes(figures: Iterable[Figures], cores: int) -> list[str]:
    """Return sentences about what the machine limits, and about other work on it."""
    lines = []
    for figure in figures:
        processes = figure.members + 1
        if processes > cores:
            lines.append(
                f"{_about(figure.members)} and the light server share {cores} cores: their pods/s are those of the "
                "machine, and only the CPU time tells what a member would do with a core of its own"
            )
        if note := noise(_about(figure.members), figure.others_cores):
            lines.append(note)
    return lines


def table(figures: Iterable[Figures]) -> Table:
    rich_table = Table(title="a burst of plain pods, divided among members", title_justify="left")
    for heading in (
        "members",
        "nodes",
        "pods at once",
        "pods/s",
        "p99 s",
        "pods per CPU s of the busiest",
        "CPU ms per pod, all members",
        "conflicts %",
        "passed on %",
        "elsewhere %",
        "light server cores",
    ):
        rich_table.add_column(heading, justify="right")
    for figure in figures:
        rich_table.add_row(
            f"{figure.members}",
            f"{figure.nodes:,}",
            f"{figure.pods:,}",
            f"{figure.pods_per_s:,.0f}",
            f"{figure.p99_s:.2f}",
            f"{figure.pods_per_cpu_s:,.0f}",
            f"{figure.cpu_ms_per_pod:.3f}",
            f"{100.0 * figure.conflict_share:.2f}",
            f"{100.0 * figure.passed_on_share:.2f}",
            f"{100.0 * figure.elsewhere_share:.1f}",
            f"{figure.server_cores:.2f}",
        )
    return rich_table
