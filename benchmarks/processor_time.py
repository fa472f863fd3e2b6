"""Readings of processor time and memory from /proc (Linux only)."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.control_plane.processes import ServerProcess
from tests.control_plane.servers import ControlPlane

_QUIET_WINDOW_S = 0.5
_QUIET_WINDOWS = 2
_QUIET_CPU_S = 0.02
_QUIET_S_MAX = 30.0
_USER, _NICE, _SYSTEM, _IRQ, _SOFT_IRQ = 0, 1, 2, 5, 6
_OTHERS_CORES_MAX = 0.15


@dataclass(frozen=True, slots=True)
class Cores:
    """CPU seconds per second between two readings."""

    scheduler_cores: float
    apiserver_cores: float
    etcd_cores: float
    harness_cores: float
    machine_cores: float


@dataclass(frozen=True, slots=True)
class Reading:
    """One moment: the clock, and the CPU time spent so far, all in seconds."""

    clock_s: float
    scheduler_s: float
    apiserver_s: float
    etcd_s: float
    harness_s: float
    machine_s: float

    @classmethod
    def take(cls, scheduler: ServerProcess | None, plane: ControlPlane) -> Self:
        servers = plane.cpu_s()
        return cls(
            clock_s=time.monotonic(),
            scheduler_s=0.0 if scheduler is None else scheduler.cpu_s(),
            apiserver_s=servers["kube-apiserver"],
            etcd_s=servers["etcd"],
            harness_s=time.process_time(),
            machine_s=busy_s(Path("/proc/stat").read_text()),
        )

    def cores_since(self, earlier: Self) -> Cores:
        """What has been spent since an earlier reading."""
        seconds = self.clock_s - earlier.clock_s
        return Cores(
            scheduler_cores=(self.scheduler_s - earlier.scheduler_s) / seconds,
            apiserver_cores=(self.apiserver_s - earlier.apiserver_s) / seconds,
            etcd_cores=(self.etcd_s - earlier.etcd_s) / seconds,
            harness_cores=(self.harness_s - earlier.harness_s) / seconds,
            machine_cores=(self.machine_s - earlier.machine_s) / seconds,
        )


def noise(where: str, others_cores: float) -> str | None:
    """The sentence about figures that other work on the machine makes doubtful; None where there was little."""
    if others_cores <= _OTHERS_CORES_MAX:
        return None
    return f"{where}: other processes used {others_cores:.2f} cores meanwhile; measure again"


def busy_s(stat: str) -> float:
    """CPU time that all processes together have spent, from the text of /proc/stat."""
    ticks = [int(tick) for tick in stat.splitlines()[0].split()[1:]]
    return sum(ticks[index] for index in (_USER, _NICE, _SYSTEM, _IRQ, _SOFT_IRQ)) / os.sysconf("SC_CLK_TCK")


def peak_rss_bytes(status: str) -> int:
    """The most memory a process has had, from the text of its /proc/<pid>/status."""
    return _kilobytes(status, "VmHWM") * 1024


def rss_bytes(status: str) -> int:
    """The memory that a process has, from the text of its /proc/<pid>/status."""
    return _kilobytes(status, "VmRSS") * 1024


def _kilobytes(status: str, name: str) -> int:
    match = re.search(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE)
    assert match is not None, f"no {name} line"
    return int(match.group(1))


def wait_quiet(process: ServerProcess, cpu_s_max: float = _QUIET_CPU_S) -> None:
    """Poll until the process spends next to no CPU time for a second: it has nothing left to do, nor is it starved."""
    deadline_s = time.monotonic() + _QUIET_S_MAX
    spent_s, quiet_windows = process.cpu_s(), 0
    while quiet_windows < _QUIET_WINDOWS and time.monotonic() < deadline_s:
        time.sleep(_QUIET_WINDOW_S)
        now_s = process.cpu_s()
        quiet_windows = quiet_windows + 1 if now_s - spent_s <= cpu_s_max else 0
        spent_s = now_s
