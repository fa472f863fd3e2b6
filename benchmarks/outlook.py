"""How long `Cluster.outlook` takes in a large cluster whose forecast is made."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from rich.table import Table

from benchmarks.nodes import CPUS, ZONES, Json, node
from benchmarks.pods import HOSTNAME, NAMESPACE, ZONE, bind, pod, spread
from benchmarks.targets import Check, at_most
from podium import Cluster
from podium.config import DEFAULT_SCHEDULER_NAME
from podium.objects.times import format_time

_NODES: Final = 5_000
_PODS: Final = 50_000
_PENDING: Final = 200
_QUESTIONS: Final = 1_000
_SEED: Final = 1
_P99_MS_MAX: Final = 20.0
_START_S: Final = 1_790_000_000.0
_MILLI_PER_NODE: Final = CPUS * 1_000
_PODS_PER_NODE: Final = _PODS // _NODES


@dataclass(frozen=True, slots=True)
class OutlookCosts:
    """The times of the questions of one kind, in milliseconds, and how many answers had which verdict."""

    kind: str
    questions: int
    p50_ms: float
    p99_ms: float
    verdicts: Mapping[str, int]


def measure() -> list[OutlookCosts]:
    """Ask each kind of question in turn, and all of them together."""
    cluster, at = outlook_cluster(), format_time(_START_S)
    cluster.outlook(f"{NAMESPACE}/wait-0", at=at)
    random = Random(_SEED)
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    verdicts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for number in range(_QUESTIONS):
        kind = random.choice(list(KINDS))
        question = KINDS[kind](number, random)
        started_s = time.perf_counter()
        answer = cluster.outlook(question, at=at)
        times[kind].append((time.perf_counter() - started_s) * 1000)
        verdicts[kind][answer.verdict.value] += 1
    times["all"] = [value for values in times.values() for value in values]
    verdicts["all"] = sum(verdicts.values(), Counter())
    return [_costs(kind, sorted(values), verdicts[kind]) for kind, values in times.items()]


def _costs(kind: str, times_ms: list[float], verdicts: Counter[str]) -> OutlookCosts:
    p50_ms, p99_ms = (times_ms[int(share * (len(times_ms) - 1))] for share in (0.5, 0.99))
    return OutlookCosts(kind, len(times_ms), p50_ms, p99_ms, dict(sorted(verdicts.items())))


# ---------------------------------------------------------------- the questions


def _question(number: int, cpu_milli: int, **spec: Any) -> Json:
    return pod(f"asked-{number}", "asked", cpu=f"{cpu_milli}m", schedulerName=DEFAULT_SCHEDULER_NAME, **spec)


def _waiting(number: int, random: Random) -> str:  # noqa: ARG001
    return f"{NAMESPACE}/wait-{random.randrange(_PENDING)}"


KINDS: Final[Mapping[str, Callable[[int, Random], Any]]] = {
    "waits in the cluster": _waiting,
    "fits now": lambda number, random: _question(number, random.choice((100, 200, 300))),
    "spreads": lambda number, random: _question(
        number, random.choice((100, 200)), topologySpreadConstraints=spread("asked", ZONE, "DoNotSchedule")
    ),
    "preempts": lambda number, random: _question(number, random.choice((3_000, 4_000)), priority=100),
    "waits for an end": lambda number, random: _question(
        number, random.choice((3_000, 4_000)), nodeSelector={ZONE: random.choice(ZONES)}
    ),
    "is too large": lambda number, random: _question(number, _MILLI_PER_NODE + random.choice((1_000, 2_000))),
    "asks for no such node": lambda number, random: _question(
        number, random.choice((100, 200)), nodeSelector={HOSTNAME: f"no-{number % 50}"}
    ),
}
"""By its name, what asks a question of that kind, given its number."""


# ---------------------------------------------------------------- the cluster


def outlook_cluster() -> Cluster:
    """A cluster whose nodes are full but for a little, with pods that end at a known time, and pods that wait."""
    return Cluster.load(list(_objects()))


def _objects() -> Iterator[Json]:
    random = Random(_SEED)
    for number in range(_NODES):
        manifest = node(number)
        yield manifest
        free_milli = _MILLI_PER_NODE - random.choice((0, 100, 200, 400))
        for index in range(_PODS_PER_NODE):
            is_last = index == _PODS_PER_NODE - 1
            cpu_milli = free_milli if is_last else free_milli // (_PODS_PER_NODE - index) * random.choice((5, 10)) // 10
            free_milli -= cpu_milli
            yield _running(f"run-{number}-{index}", manifest["metadata"]["name"], cpu_milli, random)
    for number in range(_PENDING):
        cpu_milli = random.choice((100, 3_000, 8_000, 20_000))
        yield _question(number, cpu_milli) | {"metadata": _metadata(f"wait-{number}", "wait", -60.0 + 0.1 * number)}


def _running(name: str, node_name: str, cpu_milli: int, random: Random) -> Json:
    ends = random.random() < 0.002
    spec: dict[str, Any] = {"activeDeadlineSeconds": random.randint(700, 4_000)} if ends else {}
    app = f"app-{random.randrange(200)}"
    wire = bind(pod(name, app, cpu=f"{cpu_milli}m", schedulerName=DEFAULT_SCHEDULER_NAME, **spec), node_name)
    wire["metadata"] = _metadata(name, app, -600.0)
    wire["status"]["startTime"] = format_time(_START_S - 600)
    return wire


def _metadata(name: str, app: str, age_s: float) -> Json:
    return {
        "name": name,
        "namespace": NAMESPACE,
        "uid": f"uid-{name}",
        "labels": {"app": app},
        "creationTimestamp": format_time(_START_S + age_s),
    }


def checks(costs: list[OutlookCosts]) -> list[Check]:
    """Check the time of 99 of 100 answers against its target."""
    return [at_most(f"outlook, {cost.kind}, p99", cost.p99_ms, _P99_MS_MAX, " ms") for cost in costs]


def table(costs: list[OutlookCosts]) -> Table:
    """Tabulate the costs."""
    title = f"Cluster.outlook at {_NODES:,} nodes and {_PODS:,} pods"
    rich_table = Table("the pod", "questions", "p50 ms", "p99 ms", "verdicts", title=title, title_justify="left")
    for cost in costs:
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in cost.verdicts.items())
        rich_table.add_row(cost.kind, str(cost.questions), f"{cost.p50_ms:.2f}", f"{cost.p99_ms:.2f}", verdicts)
    return rich_table
