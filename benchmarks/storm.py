"""A storm of events: thousands of pods that fit nowhere, a thousand node updates per second, and pods that go on.

Each update grows or shrinks what a node has, never by enough: every one of them is a question to the plugin that
rejected the waiting pods. Other pods are scheduled three times: in calm; with as many updates of as large objects that
no scheduler watches; and in the storm. The second rate is what API server and etcd leave of the machine to anybody, so
what is missing to it in the storm is the scheduler's own, or that it is told of the nodes.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from rich.table import Table

from benchmarks.api_server import turns
from benchmarks.bound_pods import BoundPods
from benchmarks.cluster import cluster, settle
from benchmarks.endpoints import get, total, wait_ready
from benchmarks.etcd import Etcd
from benchmarks.etcd_stream import EtcdStream, put_each
from benchmarks.measure import StallError
from benchmarks.medians import medians as medians_of
from benchmarks.nodes import CPUS, Json, node
from benchmarks.pods import NAMESPACE, pod
from benchmarks.processor_time import Reading, noise, wait_quiet
from benchmarks.schedulers import PODIUM, STARTERS
from benchmarks.start_up import Plan
from benchmarks.steady_puts import SteadyPuts, puts_as_stored
from benchmarks.targets import Check, at_least
from tests.control_plane.locate import Binaries
from tests.control_plane.servers import ControlPlane, Scheduler

NODES: Final = 1_000
PODS: Final = 3_000
WAITING: Final = 5_000
UPDATES_PER_S: Final = 1_000
STORM_S: Final = 30.0

CALM: Final = "calm"
ELSEWHERE: Final = "updates elsewhere"
STORM: Final = "storm"

# A thousand objects a second are garbage soon. API server and etcd take memory for it, of which there is enough, rather
# than the processor time that is measured. The schedulers go by their own defaults.
_SERVERS_ENVIRON: Final = {"GOGC": "400"}

_RATE_KEPT_MIN = 0.7
_HINTS = "scheduler_queueing_hint_execution_duration_seconds"
_EVENTS = "scheduler_event_handling_duration_seconds_count"
_WAIT_S_MAX = 600.0
_POLL_S = 0.5
_SCHEDULED_S_MAX = 120.0
_LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class Phase:
    """One scheduler under one load: calm, updates that it does not see, or the storm.

    `pods_per_s` and `*_cores` are of the time until the pods are bound, or two minutes. `updates_per_s`, `hint_*` and
    `events_seen` are of the whole phase, which lasts 30 s at least in the storm. `hint_cpu_s` is what the scheduler's
    own metric says: kube-scheduler drops what it cannot record in time, so it says too little there. `events_seen` are
    node updates that it handled: fewer than were made where the API server lags behind. `harness_cores` is the
    benchmark itself, which makes pods and updates.
    """

    scheduler: str
    load: str
    nodes: int
    pods: int
    pods_per_s: float
    updates_per_s: float
    scheduler_cores: float
    apiserver_cores: float
    etcd_cores: float
    harness_cores: float
    machine_cores: float
    phase_s: float
    hint_cpu_s: float
    hint_calls: float
    events_seen: float

    @property
    def others_cores(self) -> float:
        """The cores busy with other processes on the machine: noise."""
        known_cores = self.scheduler_cores + self.apiserver_cores + self.etcd_cores + self.harness_cores
        return max(0.0, self.machine_cores - known_cores)


def measure(plan: Plan, binaries: Binaries, tell: Callable[[str], None]) -> Iterator[Phase]:
    """Every phase of the plan, as it is over, on one control plane."""
    tell(f"{plan.nodes:,} nodes, {WAITING:,} pods that fit nowhere: starting a control plane")
    with cluster(binaries, plan.nodes, _node, _SERVERS_ENVIRON) as plane:
        updates = {
            ELSEWHERE: _updates(plane, plan.nodes, _unwatched_object),
            STORM: _updates(plane, plan.nodes, _node),
        }
        for scheduler in turns(plan.schedulers, plan.repeat):
            for phase in phases(plane, plan, scheduler, updates):
                tell(summary(phase))
                yield phase


def summary(phase: Phase) -> str:
    """One phase in one line."""
    return (
        f"{phase.scheduler}, {phase.load}: {phase.pods_per_s:,.0f} pods/s, {phase.updates_per_s:,.0f} updates/s; "
        f"cores: {phase.scheduler_cores:.2f} scheduler, {phase.apiserver_cores:.2f} API server, "
        f"{phase.etcd_cores:.2f} etcd, {phase.harness_cores:.2f} benchmark, {phase.machine_cores:.2f} whole machine; "
        f"{phase.hint_cpu_s:.2f} s in hints"
    )


def phases(plane: ControlPlane, plan: Plan, name: str, updates: Mapping[str, Sequence[bytes]]) -> Iterator[Phase]:
    """One scheduler under each load. Raises: NotReadyError, StallError, EtcdError."""
    with Etcd(plane.etcd_address) as etcd:
        etcd.delete_all_but_nodes()
        etcd.put(pod(f"huge-{number:06}", "huge", cpu=str(2 * CPUS)) for number in range(WAITING))
        settle(plane)
    with BoundPods(plane.url, plane.admin_token, plane.ssl_context()) as bound_pods:
        scheduler = STARTERS[name](plane, {}, ())
        try:
            wait_ready(scheduler)
            _wait_rejected(scheduler)
            for number, load in enumerate((CALM, ELSEWHERE, STORM)):
                numbers = range(number * plan.pods, (number + 1) * plan.pods)
                yield _phase(_Subject(plane, plan, name, scheduler, bound_pods), load, numbers, updates.get(load, ()))
        finally:
            scheduler.process.stop()


@dataclass(frozen=True, slots=True)
class _Subject:
    """The scheduler that is measured, and where."""

    plane: ControlPlane
    plan: Plan
    name: str
    scheduler: Scheduler
    bound_pods: BoundPods

    def reading(self) -> Reading:
        return Reading.take(self.scheduler.process, self.plane)


def _phase(subject: _Subject, load: str, numbers: range, updates: Sequence[bytes]) -> Phase:
    # Events of what was scheduled before are still written for a while, and updates of before still read.
    wait_quiet(subject.scheduler.process)
    settle(subject.plane)
    page, first, bound_before = get(subject.scheduler, "/metrics"), subject.reading(), subject.bound_pods.count()
    with EtcdStream(subject.plane.etcd_address) as stream, SteadyPuts(stream.put, updates, UPDATES_PER_S) as puts:
        _schedule(subject, numbers)
        bound_count, last = subject.bound_pods.count() - bound_before, subject.reading()
        if load == STORM:
            time.sleep(max(0.0, first.clock_s + STORM_S - time.monotonic()))
    phase_s, later_page = time.monotonic() - first.clock_s, get(subject.scheduler, "/metrics")

    def grown(metric: str, **labels: str) -> float:
        return total(later_page, metric, **labels) - total(page, metric, **labels)

    return Phase(
        scheduler=subject.name,
        load=load,
        nodes=subject.plan.nodes,
        pods=len(numbers),
        pods_per_s=bound_count / (last.clock_s - first.clock_s),
        updates_per_s=puts.made / phase_s,
        **asdict(last.cores_since(first)),
        phase_s=phase_s,
        hint_cpu_s=grown(f"{_HINTS}_sum"),
        hint_calls=grown(f"{_HINTS}_count"),
        events_seen=grown(_EVENTS, event="NodeUpdateNodeAllocatable"),
    )


# ------------------------------------------------------------ what is updated


def _updates(plane: ControlPlane, count: int, build: Callable[[int, int], Json]) -> list[bytes]:
    """So many objects with a core more, then all of them as they are at last, ready to be sent."""
    bodies: list[bytes] = []
    for cpus in (CPUS + 1, CPUS):
        items = [build(number, cpus) for number in range(count)]
        with Etcd(plane.etcd_address) as etcd:
            etcd.put(items)
        settle(plane)
        bodies += puts_as_stored(plane, items)
    return bodies


def _node(number: int, cpus: int = CPUS) -> Json:
    """The node with an identity of its own, which its updates keep."""
    manifest = node(number)
    manifest["metadata"]["uid"] = f"00000000-0000-4000-8000-{number:012}"
    manifest["status"]["allocatable"]["cpu"] = str(cpus)
    return manifest


def _unwatched_object(number: int, cpus: int = CPUS) -> Json:
    """An object about as large as a node, of a kind that schedulers do not watch: a template of pods."""
    containers = [
        {
            "name": f"container-{index}",
            "image": f"registry.invalid/service-{index}@sha256:{number:064x}",
            "resources": {"requests": {"cpu": str(cpus), "memory": "500Mi"}},
            "env": [{"name": f"SETTING_{setting}", "value": f"value-{setting}"} for setting in range(_SETTINGS)],
        }
        for index in range(_CONTAINERS)
    ]
    name = f"template-{number:05}"
    metadata = {"name": name, "namespace": NAMESPACE, "uid": f"00000000-0000-4000-9000-{number:012}"}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}}
    return {"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata, "template": template}


_CONTAINERS = 6
_SETTINGS = 5


# ------------------------------------------------------------ the pods that go on


def _wait_rejected(scheduler: Scheduler) -> None:
    """Until every huge pod has been tried in vain."""
    deadline_s = time.monotonic() + _WAIT_S_MAX
    while total(get(scheduler, "/metrics"), "scheduler_pending_pods", queue="unschedulable") < WAITING:
        if time.monotonic() > deadline_s:
            raise StallError(f"{scheduler.process.name} has not tried all pods:\n{scheduler.process.log_tail()}")
        time.sleep(_POLL_S)


def _schedule(subject: _Subject, numbers: range) -> None:
    """Create the pods and see them bound, or as many as are in two minutes. Raises: StallError."""
    deadline_s = time.monotonic() + _SCHEDULED_S_MAX
    process = subject.scheduler.process
    put_each(subject.plane.etcd_address, (pod(f"small-{number:06}", "small") for number in numbers))
    while subject.bound_pods.count() < numbers.stop and time.monotonic() < deadline_s:
        if not process.is_running:
            raise StallError(f"{process.name} has ended:\n{process.log_tail()}")
        time.sleep(_LOOK_S)


# ------------------------------------------------------------ what people read


def medians(measured: Iterable[Phase]) -> list[Phase]:
    """One for each scheduler and load."""
    return medians_of(measured, lambda phase: (phase.scheduler, phase.load))


def shares_kept(figures: Iterable[Phase]) -> dict[tuple[str, str], float]:
    """By scheduler and load, the share of the scheduler's rate in calm."""
    rates = {(figure.scheduler, figure.load): figure.pods_per_s for figure in figures}
    return {
        (scheduler, load): rate / rates[scheduler, CALM]
        for (scheduler, load), rate in rates.items()
        if rates.get((scheduler, CALM))
    }


def checks(figures: Sequence[Phase]) -> Iterator[Check]:
    """Check that podium keeps its rate: of that in calm, and of that with updates that cost the API server alone."""
    shares = shares_kept(figures)
    in_storm, elsewhere = shares.get((PODIUM, STORM)), shares.get((PODIUM, ELSEWHERE))
    if in_storm is None or not elsewhere:
        return
    about = f"storm, {figures[0].nodes:,} nodes: "
    yield at_least(f"{about}rate kept", in_storm, _RATE_KEPT_MIN, "×")
    yield at_least(f"{about}kept of the rate with updates elsewhere", in_storm / elsewhere, _RATE_KEPT_MIN, "×")


def notes(figures: Iterable[Phase]) -> Iterator[str]:
    """Return sentences about what makes the figures doubtful: other work on the machine."""
    for figure in figures:
        if note := noise(f"{figure.scheduler}, {figure.load}", figure.others_cores):
            yield note


def table(figures: Sequence[Phase]) -> Table:
    """Return the table: each scheduler's phases."""
    about = f"{WAITING:,} pods that fit nowhere, {UPDATES_PER_S:,} updates/s, {figures[0].nodes:,} nodes"
    rich_table = Table(title=about, title_justify="left")
    rich_table.add_column("scheduler")
    rich_table.add_column("load")
    for heading in (
        "pods/s",
        "of calm",
        "updates/s",
        "handled",
        "cores: scheduler",
        "API server",
        "etcd",
        "benchmark",
        "whole machine",
        "CPU s in hints",
        "hint calls",
    ):
        rich_table.add_column(heading, justify="right")
    shares = shares_kept(figures)
    for scheduler, rows in itertools.groupby(figures, key=lambda row: row.scheduler):
        for row in rows:
            share = shares.get((scheduler, row.load))
            rich_table.add_row(scheduler, row.load, f"{row.pods_per_s:,.0f}", _share(share), *_cells(row))
        rich_table.add_section()
    return rich_table


def _share(share: float | None) -> str:
    return "" if share is None else f"{share:.2f}×"


def _cells(phase: Phase) -> Iterator[str]:
    yield f"{phase.updates_per_s:,.0f}"
    yield f"{phase.events_seen:,.0f}"
    for cores in (
        phase.scheduler_cores,
        phase.apiserver_cores,
        phase.etcd_cores,
        phase.harness_cores,
        phase.machine_cores,
        phase.hint_cpu_s,
    ):
        yield f"{cores:.2f}"
    yield f"{phase.hint_calls:,.0f}"
