"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import podium

_REPOSITORY = Path(__file__).parent.parent


def describe(versions: dict[str, str] | None = None) -> dict[str, Any]:
    """The machine, the versions and how busy it was before.

    Args:
        versions: of what podium is compared with, by name.
    """
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu_model(Path("/proc/cpuinfo").read_text()),
        "cores": cores(),
        "memory_mib": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20,
        "kernel": platform.release().partition("-")[0],
        "python": platform.python_version(),
        "podium": podium.__version__,
        "commit": _commit(),
        "addition_ns": round(addition_ns(), 1),
        "load_before": round(os.getloadavg()[0], 2),
        **(versions or {}),
    }


def addition_ns(additions: int = 1_000_000, rounds: int = 5) -> float:
    """What adding two integers in a loop takes of CPU time, at best: how fast one core runs Python.

    Virtual machines that call their processor by the same name differ in it by more than a factor of two.
    """
    best_s = float("inf")
    for _ in range(rounds):
        started_s = time.process_time()
        total = 0
        for index in range(additions):
            total += index
        best_s = min(best_s, time.process_time() - started_s)
    return best_s / additions * 1e9


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


def cpu_model(cpuinfo: str) -> str:
    """The processor's name in the text of /proc/cpuinfo."""
    match = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return match.group(1) if match else platform.machine()


def _commit() -> str:
    """The working tree's commit; empty outside a clone."""
    command = ["git", "describe", "--always", "--dirty"]
    answer = subprocess.run(command, cwd=_REPOSITORY, capture_output=True, text=True, check=False)
    return answer.stdout.strip()
