"""One run: pods wait, a scheduler starts, and what happens from the first binding to the last is measured.

Start-up and sync are left out of the rate, for both schedulers alike. Events may be written after the last binding:
the CPU time until the scheduler has gone quiet is told apart from that between the bindings.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio

from benchmarks.bound_pods import BoundPods
from benchmarks.cluster import count_events, create_pods, delete_pods
from benchmarks.processor_time import Reading, peak_rss_bytes
from benchmarks.schedulers import STARTERS
from benchmarks.workloads import Workload
from tests.control_plane.processes import ServerProcess
from tests.control_plane.servers import ControlPlane

_POLL_S = 0.02
_STALL_S_MAX = 60.0
_QUIET_WINDOW_S = 0.5
_QUIET_CPU_S = 0.02
_QUIET_S_MAX = 30.0


class StallError(Exception):
    """The scheduler ended, or bound nothing for a long time."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one scheduler did with one backlog.

    Units: `*_s` are seconds; `*_cores` are CPU seconds per second of the interval.
    `interval_s` goes from the first binding that was seen to the last, `interval_pods` were bound in it.
    `cpu_interval_s` is the scheduler's CPU time in it, `cpu_tail_s` that from its end until all Events are written.
    `others_cores` is what the machine did beside scheduler, servers and harness: noise.
    """

    workload: str
    nodes: int
    pods: int
    scheduler: str
    until_first_binding_s: float
    interval_s: float
    interval_pods: int
    cpu_interval_s: float
    cpu_tail_s: float
    cpu_total_s: float
    apiserver_cores: float
    etcd_cores: float
    harness_cores: float
    others_cores: float
    peak_rss_bytes: int
    events: int

    @property
    def pods_per_s(self) -> float:
        return self.interval_pods / self.interval_s

    @property
    def cpu_ms_per_pod(self) -> float:
        """Between the first and the last binding."""
        return self.cpu_interval_s / self.interval_pods * 1e3

    @property
    def cpu_ms_per_pod_with_tail(self) -> float:
        """From the first binding until the scheduler is quiet."""
        return (self.cpu_interval_s + self.cpu_tail_s) / self.interval_pods * 1e3

    @property
    def servers_cores(self) -> float:
        """kube-apiserver and etcd together."""
        return self.apiserver_cores + self.etcd_cores


def run(plane: ControlPlane, workload: Workload, nodes: int, pods: int, scheduler: str) -> Run:
    """Create the pods, have them bound, and delete them. The nodes are there already.

    Raises:
        StallError: not all pods were bound.
    """
    anyio.run(partial(create_pods, plane, workload, pods))
    started_s = time.monotonic()
    with BoundPods(plane.url, plane.admin_token, plane.ssl_context()) as bound:
        process = STARTERS[scheduler](plane)
        try:
            wait_bound(bound, process, 1)
            first_count, first = bound.count(), Reading.take(process, plane)
            wait_bound(bound, process, pods)
            last = Reading.take(process, plane)
            wait_quiet(process)
            cpu_total_s = process.cpu_s()
            peak = peak_rss_bytes(Path(f"/proc/{process.pid}/status").read_text())
        finally:
            process.stop()
    events = anyio.run(count_events, plane)
    anyio.run(delete_pods, plane)
    assert first_count < pods, "all pods were bound between two looks: too few to measure"
    seconds = last.clock_s - first.clock_s
    scheduler_s, harness_s = last.scheduler_s - first.scheduler_s, last.harness_s - first.harness_s
    apiserver_s, etcd_s = last.apiserver_s - first.apiserver_s, last.etcd_s - first.etcd_s
    others_s = last.machine_s - first.machine_s - scheduler_s - apiserver_s - etcd_s - harness_s
    return Run(
        workload=workload.name,
        nodes=nodes,
        pods=pods,
        scheduler=scheduler,
        until_first_binding_s=first.clock_s - started_s,
        interval_s=seconds,
        interval_pods=pods - first_count,
        cpu_interval_s=scheduler_s,
        cpu_tail_s=cpu_total_s - last.scheduler_s,
        cpu_total_s=cpu_total_s,
        apiserver_cores=apiserver_s / seconds,
        etcd_cores=etcd_s / seconds,
        harness_cores=harness_s / seconds,
        others_cores=max(0.0, others_s / seconds),
        peak_rss_bytes=peak,
        events=events,
    )


def wait_bound(bound: BoundPods, process: ServerProcess, count: int) -> None:
    """Poll until that many pods are bound."""
    seen, seen_at_s = -1, time.monotonic()
    while (now := bound.count()) < count:
        if now != seen:
            seen, seen_at_s = now, time.monotonic()
        if not process.is_running or time.monotonic() - seen_at_s > _STALL_S_MAX:
            raise StallError(f"{process.name} has bound {now} of {count} pods and no more:\n{process.log_tail()}")
        time.sleep(_POLL_S)


def wait_quiet(process: ServerProcess) -> None:
    """Poll until the process spends next to no CPU time: its Events are written."""
    deadline_s = time.monotonic() + _QUIET_S_MAX
    spent_s = -1.0
    while (now_s := process.cpu_s()) - spent_s > _QUIET_CPU_S and time.monotonic() < deadline_s:
        spent_s = now_s
        time.sleep(_QUIET_WINDOW_S)
