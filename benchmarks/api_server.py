"""Both schedulers in turn on the same real API server, for each workload and size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import anyio

from benchmarks.cluster import create_nodes
from benchmarks.measure import Run, run
from benchmarks.workloads import WORKLOADS
from tests.control_plane.locate import Binaries
from tests.control_plane.servers import ControlPlane


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure."""

    workloads: Sequence[str]
    nodes: Sequence[int]
    pods: int
    repeat: int
    schedulers: Sequence[str]

    @property
    def run_count(self) -> int:
        return len(self.workloads) * len(self.nodes) * self.repeat * len(self.schedulers)


def turns(schedulers: Sequence[str], repeat: int) -> Iterator[str]:
    """Who runs when: each once per repeat, the first becoming the last, so that nobody always runs on a warm server."""
    for number in range(repeat):
        start = number % len(schedulers)
        yield from (*schedulers[start:], *schedulers[:start])


def measure(plan: Plan, binaries: Binaries, tell: Callable[[str], None]) -> Iterator[Run]:
    """Every run of the plan, as it is done; a control plane of its own for each size, so that etcd stays small."""
    number = 0
    for nodes in plan.nodes:
        tell(f"{nodes:,} nodes: starting a control plane and creating them")
        plane = ControlPlane.start(binaries)
        try:
            anyio.run(partial(create_nodes, plane, nodes))
            for name in plan.workloads:
                for scheduler in turns(plan.schedulers, plan.repeat):
                    number += 1
                    done = run(plane, WORKLOADS[name], nodes, plan.pods, scheduler)
                    tell(f"run {number} of {plan.run_count}: {summary(done)}")
                    yield done
        finally:
            plane.stop()


def summary(done: Run) -> str:
    """One run in one line."""
    return (
        f"{done.workload}, {done.nodes:,} nodes, {done.scheduler}: {done.pods_per_s:,.0f} pods/s, "
        f"{done.cpu_ms_per_pod:.2f} CPU ms per pod ({done.cpu_ms_per_pod_with_tail:.2f} until quiet), "
        f"API server and etcd {done.servers_cores:.2f} cores, other processes {done.others_cores:.2f}"
    )
