"""What a bound pod costs, by subsystem: podium's CPU time on the light API server, split by which code runs.

The rules are looked up from the innermost function outwards: the first of podium's modules that has one decides. What
only sends a request belongs to whoever asked for it; what reads an answer has no caller, and is a part of its own.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
from rich.table import Table

from benchmarks.burst import WARM_UP, wait_bound, wait_rejected
from benchmarks.endpoints import ALGORITHM, Histogram, get, histogram, wait_ready
from benchmarks.light_server import LightServer
from benchmarks.nodes import node
from benchmarks.processor_time import wait_quiet
from benchmarks.schedulers import start_podium
from benchmarks.targets import Check, at_most
from benchmarks.workloads import WORKLOADS, Workload, too_big

WATCH, DECODE, QUEUE, SNAPSHOT, DECISION = "watch", "decode", "queue", "snapshot and cache", "decision"
BINDING, STATUS, EVENT, ANSWERS = "binding POST", "status and deletions", "Event POST", "answers to writes"
LOGGING, METRICS, RECORDER, GARBAGE = "logging", "metrics", "flight recorder", "garbage"
TLS, LOOP = "decryption of what is received", "event loop, idle wake-ups"
SUBSYSTEMS: Final = (
    WATCH,
    DECODE,
    QUEUE,
    SNAPSHOT,
    DECISION,
    BINDING,
    STATUS,
    EVENT,
    ANSWERS,
    LOGGING,
    METRICS,
    RECORDER,
    GARBAGE,
    TLS,
    LOOP,
)
"""The rows of the table."""
FUNCTIONS_SHOWN: Final = 5
UNSCHEDULABLE: Final = Workload(
    name="unschedulable", about="pods that fit nowhere, and the reasons in their status", pod_of=too_big, pods=2000
)
"""What a rejection costs, in the place of what is measured elsewhere beside such pods."""
DEFAULT: Final = ["plain", "zone-spread", "pod-affinity", "preemption", "devices", UNSCHEDULABLE.name]
"""The workloads that are measured unless told otherwise."""
NODES: Final = 5_000
GOALS_MS: Final[Mapping[str, float]] = {
    "plain": 0.4,
    "zone-spread": 0.5,
    "pod-affinity": 0.6,
    "preemption": 4.0,
    "devices": 2.0,
    UNSCHEDULABLE.name: 0.3,
}
BEGIN: Final = signal.SIGRTMIN
"""Tells the sampler to begin."""
_MISSING_MAX: Final = 0.05
_DECISION_P99_MS_MAX: Final = 5.0

_RULES: Final[Mapping[str, str]] = {
    "podium/client/history": WATCH,
    "podium/client/informer": WATCH,
    "podium/client/consistency": WATCH,
    "podium/client/list": WATCH,
    "podium/client/reflector": WATCH,
    "podium/client/streams": WATCH,
    "podium/daemon/binding_cycles": BINDING,
    "podium/daemon/confirmations": WATCH,
    "podium/daemon/decisions": DECISION,
    "podium/daemon/failures": STATUS,
    "podium/daemon/handlers": WATCH,
    "podium/daemon/pod_handler": WATCH,
    "podium/daemon/loop": DECISION,
    "podium/daemon/status_writes": STATUS,
    "podium/daemon/verdict_log": LOGGING,
    "podium/binder/events": EVENT,
    "podium/binder/preemption": STATUS,
    "podium/binder/object": STATUS,
    "podium/binder/status": STATUS,
    "podium/binder": BINDING,
    "podium/plugins/default_binder": BINDING,
    "podium/cluster": SNAPSHOT,
    "podium/queues": QUEUE,
    "podium/objects": DECODE,
    "podium/engine/flight_recorder": RECORDER,
    "podium/engine": DECISION,
    "podium/framework": DECISION,
    "podium/plugins": DECISION,
    "podium/devices": DECISION,
    "podium/cel": DECISION,
    "podium/telemetry/log": LOGGING,
    "podium/telemetry": METRICS,
    "podium/lib/log": LOGGING,
    "site-packages/structlog": LOGGING,
    "site-packages/prometheus_client": METRICS,
    "site-packages/aiohttp": WATCH,
}
"""The subsystem of a module by the beginning of its path; the longest beginning decides."""
_FUNCTIONS: Final[Mapping[str, str]] = {
    "patch_status": STATUS,
    "send_status": STATUS,
    "delete_pod": STATUS,
    "evict_pod": STATUS,
}
"""Functions of modules that serve several subsystems."""
_CONNECTION: Final = "client/http_connection.py"
_TLS: Final = "/ssl.py"
_ROOT: Final = re.compile(r".*/(?=podium/(?!podium/)|site-packages/)")


class Split(msgspec.Struct):
    """The CPU time of a process by subsystem; `functions` have subsystem, function and seconds, the dearest first."""

    seconds: dict[str, float]
    functions: list[tuple[str, str, float]]
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What a pod of one workload costs; of `UNSCHEDULABLE`, what a rejection costs.

    `cpu_ms_per_pod` and `decision_p99_ms` are measured without the sampler, `parts` with it.
    """

    workload: str
    nodes: int
    pods: int
    cpu_ms_per_pod: float
    decision_p99_ms: float
    sampled_ms_per_pod: float
    parts_ms: dict[str, float]


def subsystem_of(stack: Iterable[tuple[str, str]]) -> str:
    """Return the subsystem of a stack of files and functions, the innermost first."""
    frames = list(stack)
    for file, function in frames:
        part = _rule(file)
        if part is not None:
            return _FUNCTIONS.get(function, part)
    paths = [file for file, _ in frames]
    if any(path.endswith(_CONNECTION) for path in paths):
        return ANSWERS
    return TLS if any(path.endswith(_TLS) for path in paths) else LOOP


_cache: dict[str, str | None] = {}


def _rule(file: str) -> str | None:
    if file not in _cache:
        path = _ROOT.sub("", file)
        beginnings = [beginning for beginning in _RULES if path.startswith(beginning)]
        _cache[file] = _RULES[max(beginnings, key=len)] if beginnings else None
    return _cache[file]


def workload_named(name: str) -> Workload:
    """Return the workload with that name."""
    return UNSCHEDULABLE if name == UNSCHEDULABLE.name else WORKLOADS[name]


def measure(workload: Workload, nodes: int, pods: int | None, repeat: int, binary: Path) -> tuple[Cost, Split]:
    """Bind a backlog on the light API server: several times as it is, and once with the sampler.

    Raises: StallError, StartError.
    """
    count = workload.pods_that_fit(nodes, (pods or workload.pods) + WARM_UP) - WARM_UP
    runs = [_run(workload, nodes, count, binary, ()) for _ in range(repeat)]
    with TemporaryDirectory() as directory:
        output = Path(directory) / "split.json"
        _run(workload, nodes, count, binary, (sys.executable, "-m", "benchmarks.sampled_run", str(output)))
        split = msgspec.json.decode(output.read_bytes(), type=Split)
    parts_ms = {part: split.seconds.get(part, 0.0) / count * 1e3 for part in SUBSYSTEMS}
    cost = Cost(
        workload=workload.name,
        nodes=nodes,
        pods=count,
        cpu_ms_per_pod=median(cpu_s for cpu_s, _ in runs) / count * 1e3,
        decision_p99_ms=median(decisions.quantile(0.99) for _, decisions in runs) * 1e3,
        sampled_ms_per_pod=split.cpu_s / count * 1e3,
        parts_ms=parts_ms,
    )
    return cost, split


def _run(workload: Workload, nodes: int, pods: int, binary: Path, command: Sequence[str]) -> tuple[float, Histogram]:
    """Return podium's CPU time from the creation of the pods until it is quiet, Events included, and its decisions."""
    wait = wait_rejected if workload is UNSCHEDULABLE else wait_bound
    with LightServer(binary) as server:
        server.create(map(node, range(nodes)))
        server.create(workload.objects_before(nodes, pods + WARM_UP))
        scheduler = start_podium(server, None, workload.scheduler_flags, *([command] if command else []))
        process = scheduler.process
        try:
            wait_ready(scheduler)
            server.create(map(workload.pod, range(pods, pods + WARM_UP)))
            wait(server, [process], WARM_UP)
            wait_quiet(process)
            # First, since a page of metrics costs as much as a hundred pods.
            page = get(scheduler, "/metrics")
            if command:
                os.kill(process.pid, BEGIN)
            before_s = process.cpu_s()
            server.create(map(workload.pod, range(pods)))
            wait(server, [process], WARM_UP + pods)
            wait_quiet(process)
            cpu_s, later_page = process.cpu_s() - before_s, get(scheduler, "/metrics")
        finally:
            process.stop()
    return cpu_s, histogram(later_page, ALGORITHM).since(histogram(page, ALGORITHM))


def checks(costs: Iterable[Cost]) -> Iterator[Check]:
    """Check that the parts add up, that no workload costs more than it may, and that no decision holds up others."""
    for cost in costs:
        about = f"{cost.workload}, {cost.nodes:,} nodes"
        # Less than a millionth is what adding floats leaves.
        missing = round(abs(1.0 - sum(cost.parts_ms.values()) / cost.sampled_ms_per_pod), 6)
        yield at_most(f"{about}: share of CPU that no part has", missing * 100.0, _MISSING_MAX * 100.0, " %")
        if cost.workload in GOALS_MS:
            yield at_most(f"{about}: CPU per pod, Events included", cost.cpu_ms_per_pod, GOALS_MS[cost.workload], " ms")
        yield at_most(f"{about}: p99 of a decision", cost.decision_p99_ms, _DECISION_P99_MS_MAX, " ms")


def table(costs: Sequence[Cost]) -> Table:
    """Return one row for each subsystem, one column for each workload, and what was measured without the sampler."""
    rich_table = Table(title="CPU per pod by subsystem, ms", title_justify="left")
    rich_table.add_column("subsystem")
    for cost in costs:
        rich_table.add_column(f"{cost.workload}, {cost.nodes:,} nodes", justify="right")
    for part in SUBSYSTEMS:
        rich_table.add_row(part, *(f"{cost.parts_ms[part]:.3f}" for cost in costs))
    rich_table.add_row("all parts", *(f"{sum(cost.parts_ms.values()):.3f}" for cost in costs), style="bold")
    rich_table.add_row("measured with the sampler", *(f"{cost.sampled_ms_per_pod:.3f}" for cost in costs))
    rich_table.add_row("measured without it", *(f"{cost.cpu_ms_per_pod:.3f}" for cost in costs))
    rich_table.add_row("p99 of a decision, by the clock", *(f"{cost.decision_p99_ms:.2f}" for cost in costs))
    return rich_table


def dearest_functions(split: Split, pods: int) -> Iterator[str]:
    """Yield the dearest functions of each subsystem, each subsystem in a line."""
    for part in SUBSYSTEMS:
        rows = [(name, seconds) for subsystem, name, seconds in split.functions if subsystem == part][:FUNCTIONS_SHOWN]
        if rows:
            texts = (f"{_ROOT.sub('', name)} {seconds / pods * 1e6:.0f} µs" for name, seconds in rows)
            yield f"{part}: {', '.join(texts)}"
