"""A storm of events: thousands of pods that fit nowhere, a thousand node updates per second, and pods that go on.

Each update grows or shrinks what a node has, never by enough: every one of them is a question to the plugin that
rejected the waiting pods. Other pods are scheduled twice, in calm and in the storm.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event, Thread
from types import TracebackType
from typing import Final, Self

from rich.table import Table

from benchmarks.api_server import turns
from benchmarks.bound_pods import BoundPods
from benchmarks.cluster import cluster, settle
from benchmarks.endpoints import get, total, wait_ready
from benchmarks.etcd import Etcd, single_put
from benchmarks.measure import StallError
from benchmarks.medians import medians as medians_of
from benchmarks.nodes import CPUS, Json, node
from benchmarks.pods import pod
from benchmarks.processor_time import Reading
from benchmarks.schedulers import PODIUM, STARTERS
from benchmarks.start_up import Plan
from benchmarks.targets import Check, at_least
from tests.control_plane.locate import Binaries
from tests.control_plane.servers import ControlPlane, Scheduler

NODES: Final = 1_000
PODS: Final = 3_000
WAITING: Final = 5_000
UPDATES_PER_S: Final = 1_000
STORM_S: Final = 30.0

_RATE_KEPT_MIN = 0.7
_HINTS = "scheduler_queueing_hint_execution_duration_seconds"
_EVENTS = "scheduler_event_handling_duration_seconds_count"
_WAIT_S_MAX = 600.0
_WRITERS = 4
_POLL_S = 0.5
_SCHEDULED_S_MAX = 120.0
_LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class Storm:
    """What one scheduler made of calm and storm.

    `storm_s` goes from the first update until the other pods are bound, or two minutes, and at least 30 s;
    `updates_per_s`, `cpu_cores` and `hint_*` are of that time. `hint_cpu_s` is what the scheduler's own metric says:
    kube-scheduler drops what it cannot record in time, so it says too little there. `events_seen` are node updates
    that it handled.
    """

    scheduler: str
    nodes: int
    pods: int
    calm_pods_per_s: float
    storm_pods_per_s: float
    calm_cpu_ms_per_pod: float
    storm_s: float
    updates_per_s: float
    cpu_cores: float
    hint_cpu_s: float
    hint_calls: float
    events_seen: float

    @property
    def rate_kept(self) -> float:
        """The share of the rate in calm that is left in the storm."""
        return self.storm_pods_per_s / self.calm_pods_per_s


def measure(plan: Plan, binaries: Binaries, tell: Callable[[str], None]) -> Iterator[Storm]:
    """Every storm of the plan, as it is over, on one control plane."""
    tell(f"{plan.nodes:,} nodes, {WAITING:,} pods that fit nowhere: starting a control plane")
    with cluster(binaries, plan.nodes, _node) as plane:
        for number, scheduler in enumerate(turns(plan.schedulers, plan.repeat), start=1):
            done = weather(plane, plan, scheduler)
            tell(f"storm {number} of {plan.repeat * len(plan.schedulers)}: {summary(done)}")
            yield done


def summary(done: Storm) -> str:
    """One storm in one line."""
    return (
        f"{done.scheduler}, {done.calm_pods_per_s:,.0f} pods/s in calm, "
        f"{done.storm_pods_per_s:,.0f} in a storm of {done.updates_per_s:,.0f} updates/s; "
        f"{done.cpu_cores:.2f} cores, {done.hint_cpu_s:.2f} s in hints"
    )


def weather(plane: ControlPlane, plan: Plan, name: str) -> Storm:
    """Calm, then storm. Raises: NotReadyError, StallError."""
    with Etcd(plane.etcd_address) as etcd:
        etcd.delete_all_but_nodes()
        etcd.put(pod(f"huge-{number:06}", "huge", cpu=str(2 * CPUS)) for number in range(WAITING))
        settle(plane)
        with BoundPods(plane.url, plane.admin_token, plane.ssl_context()) as bound:
            scheduler = STARTERS[name](plane, {})
            try:
                wait_ready(scheduler)
                _wait_rejected(scheduler)
                calm = _schedule(plane, scheduler, bound, range(plan.pods))
                page, before = get(scheduler, "/metrics"), Reading.take(scheduler.process, plane)
                with Updates(plane, plan.nodes) as updates:
                    in_storm = _schedule(plane, scheduler, bound, range(plan.pods, 2 * plan.pods))
                    time.sleep(max(0.0, before.clock_s + STORM_S - time.monotonic()))
                after, later_page = Reading.take(scheduler.process, plane), get(scheduler, "/metrics")
            finally:
                scheduler.process.stop()

    def grown(metric: str, **labels: str) -> float:
        return total(later_page, metric, **labels) - total(page, metric, **labels)

    seconds = after.clock_s - before.clock_s
    return Storm(
        scheduler=name,
        nodes=plan.nodes,
        pods=plan.pods,
        calm_pods_per_s=calm.pods / calm.seconds,
        storm_pods_per_s=in_storm.pods / in_storm.seconds,
        calm_cpu_ms_per_pod=calm.cpu_s / max(1, calm.pods) * 1e3,
        storm_s=seconds,
        updates_per_s=updates.made / seconds,
        cpu_cores=(after.scheduler_s - before.scheduler_s) / seconds,
        hint_cpu_s=grown(f"{_HINTS}_sum"),
        hint_calls=grown(f"{_HINTS}_count"),
        events_seen=grown(_EVENTS, event="NodeUpdateNodeAllocatable"),
    )


class Updates:
    """Changes a node every millisecond, in turn, for as long as the block lasts."""

    def __init__(self, plane: ControlPlane, nodes: int) -> None:
        self.made = 0
        self._address = plane.etcd_address
        bodies = (single_put(_node(number, cpus)) for cpus in (CPUS + 1, CPUS) for number in range(nodes))
        self._bodies = itertools.cycle(list(bodies))
        self._is_over = Event()
        self._threads = [Thread(target=self._run, name="updates") for _ in range(_WRITERS)]

    def __enter__(self) -> Self:
        self._started_s = time.monotonic()
        for each in self._threads:
            each.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        for each in self._threads:
            each.join()

    def _run(self) -> None:
        with Etcd(self._address) as etcd:
            while True:
                due_s = self._started_s + self.made / UPDATES_PER_S
                if self._is_over.wait(max(0.0, due_s - time.monotonic())):
                    return
                self.made += 1
                etcd.put_singly([next(self._bodies)])


def _node(number: int, cpus: int = CPUS) -> Json:
    """The node with an identity of its own, which its updates keep."""
    made = node(number)
    made["metadata"]["uid"] = f"00000000-0000-4000-8000-{number:012}"
    made["status"]["allocatable"]["cpu"] = str(cpus)
    return made


def _wait_rejected(scheduler: Scheduler) -> None:
    """Until every huge pod has been tried in vain."""
    deadline_s = time.monotonic() + _WAIT_S_MAX
    while total(get(scheduler, "/metrics"), "scheduler_pending_pods", queue="unschedulable") < WAITING:
        if time.monotonic() > deadline_s:
            raise StallError(f"{scheduler.process.name} has not tried all pods:\n{scheduler.process.log_tail()}")
        time.sleep(_POLL_S)


@dataclass(frozen=True, slots=True)
class _Scheduled:
    """How many pods were bound in how many seconds, and the scheduler's CPU time in them."""

    pods: int
    seconds: float
    cpu_s: float


def _schedule(plane: ControlPlane, scheduler: Scheduler, bound: BoundPods, numbers: range) -> _Scheduled:
    """Create the pods and see them bound, or as many as are in two minutes. Raises: StallError."""
    bodies = [single_put(pod(f"small-{number:06}", "small")) for number in numbers]
    before = Reading.take(scheduler.process, plane)
    with ThreadPoolExecutor(_WRITERS) as writers:
        for share in range(_WRITERS):
            writers.submit(_put, plane.etcd_address, bodies[share::_WRITERS])
    while (now := bound.count()) < numbers.stop and time.monotonic() < before.clock_s + _SCHEDULED_S_MAX:
        if not scheduler.process.is_running:
            raise StallError(f"{scheduler.process.name} has ended:\n{scheduler.process.log_tail()}")
        time.sleep(_LOOK_S)
    after = Reading.take(scheduler.process, plane)
    seconds, cpu_s = after.clock_s - before.clock_s, after.scheduler_s - before.scheduler_s
    return _Scheduled(now - numbers.start, seconds, cpu_s)


def _put(address: str, bodies: Sequence[bytes]) -> None:
    with Etcd(address) as etcd:
        etcd.put_singly(bodies)


def medians(storms: Iterable[Storm]) -> list[Storm]:
    """One for each scheduler."""
    return medians_of(storms, lambda each: each.scheduler)


def checks(figures: Iterable[Storm]) -> Iterator[Check]:
    """Whether podium keeps its rate."""
    for each in figures:
        if each.scheduler == PODIUM:
            yield at_least(f"storm, {each.nodes:,} nodes: rate kept", each.rate_kept, _RATE_KEPT_MIN, "×")


def table(figures: Sequence[Storm]) -> Table:
    """What people read."""
    about = f"{WAITING:,} pods that fit nowhere, {UPDATES_PER_S:,} node updates/s, {figures[0].nodes:,} nodes"
    shown = Table(title=about, title_justify="left")
    shown.add_column("scheduler")
    for heading in (
        "pods/s in calm",
        "in the storm",
        "kept",
        "updates/s",
        "handled",
        "CPU cores in the storm",
        "CPU s in hints",
        "hint calls",
    ):
        shown.add_column(heading, justify="right")
    for each in figures:
        shown.add_row(
            each.scheduler,
            f"{each.calm_pods_per_s:,.0f}",
            f"{each.storm_pods_per_s:,.0f}",
            f"{each.rate_kept:.2f}×",
            f"{each.updates_per_s:,.0f}",
            f"{each.events_seen:,.0f}",
            f"{each.cpu_cores:.2f}",
            f"{each.hint_cpu_s:.2f}",
            f"{each.hint_calls:,.0f}",
        )
    return shown
