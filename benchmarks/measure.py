"""One run: pods wait, a scheduler starts, and what it does from being ready until all of them are bound is measured.

Start-up and sync are left out, for both schedulers alike. Events may be written after the last binding: the CPU time
until the scheduler has gone quiet is told apart from that before.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bound_pods import BoundPods
from benchmarks.cluster import EVENTS, prepare
from benchmarks.endpoints import (
    ALGORITHM,
    API_REQUEST,
    ATTEMPT,
    BINDING,
    LOOP_STALL,
    STALL_S,
    Histogram,
    get,
    histogram,
    wait_ready,
)
from benchmarks.etcd import Etcd
from benchmarks.processor_time import Reading, peak_rss_bytes, wait_quiet
from benchmarks.schedulers import Start
from benchmarks.workloads import Workload
from tests.control_plane.processes import ServerProcess
from tests.control_plane.servers import ControlPlane

_POLL_S = 0.02
_STALL_S_MAX = 60.0
_BUSY_STALL_S_MAX = 300.0
_BUSY_CORES = 0.1


class StallError(Exception):
    """The scheduler ended, or bound nothing for a long time."""


@dataclass(frozen=True, slots=True)
class Run:
    """One scheduler's work on one backlog.

    Units: `*_s` are seconds; `*_cores` are CPU seconds per second of the interval.
    `interval_s` goes from when the scheduler said that it was ready to when the last pod was seen to be bound.
    `cpu_interval_s` is the scheduler's CPU time in it, `cpu_tail_s` that from its end until all Events are written.
    `attempt_*` are scheduling and binding cycle together, `algorithm_*` the decision alone, `binding_*` what the API
    server itself took for bindings.
    `loop_stalls` is how often podium's event loop was more than 50 ms late.
    `machine_cores` is everything that the machine did in it.
    """

    workload: str
    nodes: int
    pods: int
    scheduler: str
    until_ready_s: float
    interval_s: float
    cpu_interval_s: float
    cpu_tail_s: float
    cpu_total_s: float
    apiserver_cores: float
    etcd_cores: float
    harness_cores: float
    machine_cores: float
    peak_rss_bytes: int
    events: int
    attempts: int
    attempt_p50_ms: float
    attempt_p99_ms: float
    algorithm_p99_ms: float
    binding_p99_ms: float
    loop_stalls: int

    @property
    def pods_per_s(self) -> float:
        return self.pods / self.interval_s

    @property
    def cpu_ms_per_pod(self) -> float:
        """Until the last pod is bound."""
        return self.cpu_interval_s / self.pods * 1e3

    @property
    def cpu_ms_per_pod_with_tail(self) -> float:
        """Until the scheduler is quiet."""
        return (self.cpu_interval_s + self.cpu_tail_s) / self.pods * 1e3

    @property
    def servers_cores(self) -> float:
        """kube-apiserver and etcd together."""
        return self.apiserver_cores + self.etcd_cores

    @property
    def others_cores(self) -> float:
        """The cores busy with other processes than scheduler, servers and harness: noise."""
        known_cores = self.servers_cores + self.harness_cores + self.cpu_interval_s / self.interval_s
        return max(0.0, self.machine_cores - known_cores)


def run(plane: ControlPlane, workload: Workload, nodes: int, pods: int, scheduler: str, start: Start) -> Run:
    """Have the pods bound, in a cluster that has its nodes already.

    Args:
        scheduler: what to call it.

    Raises:
        StallError: not all pods were bound.
    """
    with Etcd(plane.etcd_address) as etcd, workload.beside(plane, nodes) as fields:
        prepare(plane, etcd, workload, nodes, pods)
        earlier_bindings = _bindings(plane)
        with BoundPods(plane.url, plane.admin_token, plane.ssl_context()) as bound_pods:
            started_s = time.monotonic()
            measured = start(plane, fields, workload.scheduler_flags)
            process = measured.process
            try:
                wait_ready(measured)
                first = Reading.take(process, plane)
                wait_bound(bound_pods, process, pods)
                last = Reading.take(process, plane)
                wait_quiet(process)
                cpu_total_s = process.cpu_s()
                page = get(measured, "/metrics")
                peak = peak_rss_bytes(Path(f"/proc/{process.pid}/status").read_text())
            finally:
                process.stop()
        events = etcd.count(EVENTS)
    bindings = _bindings(plane).since(earlier_bindings)
    cores = last.cores_since(first)
    durations = histogram(page, ATTEMPT)
    return Run(
        workload=workload.name,
        nodes=nodes,
        pods=pods,
        scheduler=scheduler,
        until_ready_s=first.clock_s - started_s,
        interval_s=last.clock_s - first.clock_s,
        cpu_interval_s=last.scheduler_s - first.scheduler_s,
        cpu_tail_s=cpu_total_s - last.scheduler_s,
        cpu_total_s=cpu_total_s,
        apiserver_cores=cores.apiserver_cores,
        etcd_cores=cores.etcd_cores,
        harness_cores=cores.harness_cores,
        machine_cores=cores.machine_cores,
        peak_rss_bytes=peak,
        events=events,
        attempts=int(durations.total),
        attempt_p50_ms=durations.quantile(0.5) * 1e3,
        attempt_p99_ms=durations.quantile(0.99) * 1e3,
        algorithm_p99_ms=histogram(page, ALGORITHM).quantile(0.99) * 1e3,
        binding_p99_ms=bindings.quantile(0.99) * 1e3,
        loop_stalls=histogram(page, LOOP_STALL).above(STALL_S),
    )


def _bindings(plane: ControlPlane) -> Histogram:
    return histogram(get(plane, "/metrics"), API_REQUEST, **BINDING)


def wait_bound(bound_pods: BoundPods, process: ServerProcess, count: int) -> None:
    """Poll until that many pods are bound. Raises: StallError."""
    progress = Progress()
    while (bound_count := bound_pods.count()) < count:
        if not process.is_running or progress.is_stalled(bound_count, process.cpu_s(), time.monotonic()):
            raise StallError(
                f"{process.name} has bound {bound_count} of {count} pods and no more:\n{process.log_tail()}"
            )
        time.sleep(_POLL_S)


class Progress:
    """Tells a scheduler that does nothing from one that thinks for long, as about a thousand preemptions at once."""

    def __init__(self) -> None:
        self._seen = -1
        self._cpu_s = self._since_s = 0.0

    def is_stalled(self, count: int, cpu_s: float, now_s: float) -> bool:
        """Return True if the count has stood still for long, and for very long if the process was busy meanwhile."""
        if count != self._seen:
            self._seen, self._cpu_s, self._since_s = count, cpu_s, now_s
        still_s = now_s - self._since_s
        is_busy = cpu_s - self._cpu_s > _BUSY_CORES * still_s
        return still_s > (_BUSY_STALL_S_MAX if is_busy else _STALL_S_MAX)
