"""What podium is to reach, and whether it does: ratios to kube-scheduler, attempts per second, growth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.table import Table

from benchmarks.endpoints import STALL_S
from benchmarks.report import Figures, ratios
from benchmarks.schedulers import PODIUM

P99_MS_MAX: Final = 5.0

# The harness and the machine itself have the rest.
_SATURATED = 0.9
# Of the one core that a thread can have.
_OWN_CORES_MAX = 0.7


@dataclass(frozen=True, slots=True)
class Target:
    """The targets of a workload's ratios podium : kube-scheduler, and of podium's p99, on a real API server.

    `is_measured_alone`: only if it is named, since it needs another scheduler's binary.
    """

    workload: str
    nodes: int
    pods_per_s_min: float
    cpu_max: float
    attempt_p99_ms_max: float = P99_MS_MAX
    is_measured_alone: bool = False


TARGETS: Final = (
    Target("plain", 500, 1.0, 0.7),
    Target("plain", 5_000, 1.5, 0.5),
    Target("node-affinity", 5_000, 1.5, 0.5),
    Target("zone-spread", 5_000, 2.0, 0.4),
    Target("zone-spread-soft", 5_000, 2.0, 0.4),
    Target("pod-affinity-preferred", 5_000, 2.0, 0.4),
    Target("anti-affinity", 5_000, 2.0, 0.4),
    Target("pod-affinity", 5_000, 3.0, 0.25),
    Target("preemption", 5_000, 2.0, 0.5),
    Target("devices", 1_000, 3.0, 0.3),
    Target("gangs", 1_000, 3.0, 0.3),
    Target("policies-on-a-server", 1_000, 2.5, 0.3, is_measured_alone=True),
    Target("extender", 100, 0.8, 0.5, attempt_p99_ms_max=50.0),
)


@dataclass(frozen=True, slots=True)
class Check:
    """One target beside what was measured."""

    about: str
    target: str
    measured: str
    is_met: bool


def at_least(about: str, measured: float, target: float, unit: str = "") -> Check:
    return Check(about, f"≥ {target:,g}{unit}", f"{_number(measured)}{unit}", measured >= target)


def at_most(about: str, measured: float, target: float, unit: str = "") -> Check:
    return Check(about, f"≤ {target:,g}{unit}", f"{_number(measured)}{unit}", measured <= target)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def on_api_server(figures: Sequence[Figures], cores: int) -> Iterator[Check]:
    """The ratios of whatever was measured and has a target. CPU time counts until all Events are written."""
    ratio_by_size = {(ratio.workload, ratio.nodes): ratio for ratio in ratios(figures)}
    of_podium = {(figure.workload, figure.nodes): figure for figure in figures if figure.scheduler == PODIUM}
    for target in TARGETS:
        size = (target.workload, target.nodes)
        if size in ratio_by_size:
            about = f"{target.workload}, {target.nodes:,} nodes: "
            ratio, podium = ratio_by_size[size], of_podium[size]
            yield _throughput(about, ratio.pods_per_s, target.pods_per_s_min, podium, cores)
            yield at_most(f"{about}CPU per pod, Events included", ratio.cpu_ms_per_pod_with_tail, target.cpu_max, "×")
            limit_ms = target.attempt_p99_ms_max
            yield at_most(f"{about}p99 of a decision", podium.algorithm_p99_ms, limit_ms, " ms")
            yield at_most(f"{about}loop stalls over {STALL_S * 1e3:.0f} ms", podium.loop_stalls, 0)
            yield _whole_attempt(about, podium, limit_ms)


def _throughput(about: str, ratio: float, target: float, podium: Figures, cores: int) -> Check:
    """pods/s count where the scheduler is the limit; where it waits for API server and etcd, they are."""
    plain = at_least(f"{about}pods/s", ratio, target, "×")
    if plain.is_met or not servers_are_the_limit(podium, cores):
        return plain
    measured = f"{plain.measured}, API server and etcd saturated ({podium.servers_cores:.2f} of {cores} cores)"
    return Check(plain.about, plain.target, measured, is_met=True)


def _whole_attempt(about: str, podium: Figures, limit_ms: float) -> Check:
    """With the binding, an attempt cannot be shorter than what the API server itself takes for it."""
    plain = at_most(f"{about}p99 of an attempt, binding included", podium.attempt_p99_ms, limit_ms, " ms")
    own = f"{plain.measured}, API server's own part {_number(podium.binding_p99_ms)} ms"
    return Check(plain.about, plain.target, own, plain.is_met)


def servers_are_the_limit(podium: Figures, cores: int) -> bool:
    """Return True if API server and etcd have all the CPU that podium leaves, and its one thread waits for them."""
    own_cores = podium.cpu_ms_per_pod * podium.pods_per_s / 1e3
    return podium.servers_cores >= _SATURATED * (cores - own_cores) and own_cores <= _OWN_CORES_MAX


def table(checks: Iterable[Check]) -> Table:
    rich_table = Table(title="Targets", title_justify="left")
    for heading in ("", "target", "measured", ""):
        rich_table.add_column(heading)
    for check in checks:
        rich_table.add_row(check.about, check.target, check.measured, "met" if check.is_met else "[bold red]missed[/]")
    return rich_table
