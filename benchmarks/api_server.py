"""Both schedulers in turn on the same real API server, for each workload and size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from benchmarks.cluster import cluster
from benchmarks.measure import Run, StallError, run
from benchmarks.schedulers import Start
from benchmarks.workloads import WORKLOADS
from tests.control_plane.locate import Binaries


@dataclass(frozen=True, slots=True)
class Size:
    """One workload in a cluster of one size. `pods` is None for as many as the workload has by itself."""

    workload: str
    nodes: int
    pods: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of the measurement: the schedulers by name."""

    sizes: Sequence[Size]
    repeat: int
    schedulers: Mapping[str, Start]

    @property
    def run_count(self) -> int:
        return len(self.sizes) * self.repeat * len(self.schedulers)


def turns(schedulers: Sequence[str], repeat: int) -> Iterator[str]:
    """Who runs when: each once per repeat, the first becoming the last, so that nobody always runs on a warm server."""
    for number in range(repeat):
        start = number % len(schedulers)
        yield from (*schedulers[start:], *schedulers[:start])


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that came to nothing."""

    workload: str
    nodes: int
    scheduler: str
    problem: str


def measure(plan: Plan, binaries: Binaries, tell: Callable[[str], None]) -> Iterator[Run | Failure]:
    """Every run of the plan, as it is done; a control plane of its own for each number of nodes and set of flags."""
    number = 0
    for (nodes, flags), sizes in groupby(sorted(plan.sizes, key=_cluster), key=_cluster):
        tell(f"{nodes:,} nodes: starting a control plane")
        with cluster(binaries, nodes, flags=flags) as plane:
            for size in sizes:
                workload = WORKLOADS[size.workload]
                pods = workload.pods_that_fit(nodes, size.pods)
                for scheduler in turns(list(plan.schedulers), plan.repeat):
                    number += 1
                    try:
                        run_result = run(plane, workload, nodes, pods, scheduler, plan.schedulers[scheduler])
                    except StallError as problem:
                        # The others may still be worth having.
                        tell(f"run {number} of {plan.run_count}: {size.workload}, {scheduler} failed: {problem}")
                        yield Failure(size.workload, nodes, scheduler, str(problem).partition("\n")[0])
                        continue
                    tell(f"run {number} of {plan.run_count}: {summary(run_result)}")
                    yield run_result


def _cluster(size: Size) -> tuple[int, tuple[str, ...]]:
    return size.nodes, WORKLOADS[size.workload].server_flags


def summary(run: Run) -> str:
    """One run in one line."""
    return (
        f"{run.workload}, {run.nodes:,} nodes, {run.scheduler}: {run.pods:,} pods in {run.interval_s:.1f} s, "
        f"{run.pods_per_s:,.0f} pods/s, "
        f"{run.cpu_ms_per_pod:.2f} CPU ms per pod ({run.cpu_ms_per_pod_with_tail:.2f} until quiet), "
        f"API server and etcd {run.servers_cores:.2f} cores, other processes {run.others_cores:.2f}"
    )
