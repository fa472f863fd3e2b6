"""A fleet of watched members: how long an answer takes, warm, and what memory the members take.

The members are filled as their watches would fill them, from the bytes of API servers; nothing else runs. A question is
asked of the same object that the interfaces ask. Between two of them nothing happens, or a pod of every member comes or
goes, or the next question is about a template that was never seen before.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Final

import anyio
import orjson
from rich.table import Table

from benchmarks import realistic
from benchmarks.nodes import Json
from benchmarks.processor_time import rss_bytes
from benchmarks.targets import Check, at_most
from podium.client.credentials import load
from podium.client.informer_set import InformerSet
from podium.client.session import ApiSession
from podium.engine.files import LocatedManifest
from podium.estimator.accurate import Rules
from podium.fleets.search import FleetQuestion
from podium.fleets.server.fleet import Staleness, WatchedFleet
from podium.fleets.server.kinds import SHARED_NODES, SHARED_PODS
from podium.fleets.server.watched import WatchedCluster
from podium.fleets.workload import read_workload
from podium.lib.system_clock import SystemClock
from podium.objects.resource_types import ResourceType
from podium.objects.wire import ObjectDecoder

MEMBERS: Final = 40
NODE_COUNT: Final = 500
POD_COUNT: Final = 5_000
QUESTIONS: Final = 50
UNCHANGED, CHANGED, NEW = "nothing changed", "every member changed", "new template"

_STATUS: Final = Path("/proc/self/status")
_P99_MS_MAX: Final = 50.0
_MB_MAX: Final = 100.0
_REPLICAS: Final = 8
_DEADLINE_S: Final = 30.0
_BATCH: Final = 50
_PREFIX: Final = b"@member@"
"""Of the uids in a list, which each member has its own of."""
_APP: Final = {"app": "asked"}
_APART: Final = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": _APP}}
            ]
        }
    }
}
_SPREAD: Final = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": _APP},
        }
    ]
}
_KINDS: Final[Mapping[str, tuple[Json, str]]] = {
    "plain": ({}, "1"),
    "apart": (_APART, "1"),
    "spread": (_SPREAD, "1"),
    "too large": ({}, "1000"),
}


@dataclass(frozen=True, slots=True)
class Latency:
    """The times of the answers about one kind of workload. Units: milliseconds of wall time.

    Attributes:
        clusters_max: how many clusters are enough; 0 for all.
        state: what has changed since the last question.
        clusters: how many take it.
    """

    kind: str
    clusters_max: int
    state: str
    clusters: int
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class FleetCosts:
    """What the fleet costs. `rss_mb` is what its members add to the process, in 10⁶ bytes."""

    members: int
    nodes: int
    pods: int
    rss_mb: float
    latencies: list[Latency]


def measure(
    members: int = MEMBERS, nodes: int = NODE_COUNT, pods: int = POD_COUNT, questions: int = QUESTIONS
) -> FleetCosts:
    """Fill a fleet, and ask it."""
    return anyio.run(_measure, members, nodes, pods, questions)


async def _measure(members: int, nodes: int, pods: int, questions: int) -> FleetCosts:
    fleet = WatchedFleet(SystemClock(), Staleness())
    with tempfile.TemporaryDirectory() as directory:
        # A small member first, so that what is loaded once is not counted.
        fleet.put("first", await _member("first", _lists(Path(directory, "small"), 10, 10)))
        await fleet.ask(_question("plain", 0, 1))
        fleet.let_go("first")
        _informers.clear()
        lists = _lists(Path(directory), nodes, pods)
        gc.collect()
        before_bytes = rss_bytes(_STATUS.read_text())
        for number in range(members):
            fleet.put(f"member-{number:02}", await _member(f"member-{number:02}", lists))
    # Indexes are built for a question, and what has changed reaches the columns.
    await fleet.ask(_question("spread", 0, 0), deadline_s=_DEADLINE_S)
    gc.collect()
    rss_mb = (rss_bytes(_STATUS.read_text()) - before_bytes) / 1e6
    latencies = [
        await _latency(fleet, kind, clusters_max, questions, state)
        for kind in _KINDS
        for clusters_max in (0, 1)
        for state in (UNCHANGED, CHANGED, NEW)
    ]
    return FleetCosts(members, nodes, pods, rss_mb, latencies)


_informers: Final[list[InformerSet]] = []


def _change(number: int) -> None:
    """Let a pod come to every member, or go."""
    for index, informers in enumerate(_informers):
        informer = informers.informer(SHARED_PODS)
        pod = _identify(realistic.running_pod(1_000_000, NODE_COUNT), index)
        (item,) = ObjectDecoder(SHARED_PODS).items(orjson.dumps([pod])).items
        if number % 2:
            informer.remove(item.key)
        else:
            informer.set(item)


async def _member(name: str, lists: Mapping[ResourceType[Any], Path]) -> WatchedCluster:
    clock = SystemClock()
    session = ApiSession(await load(None, clock, master="http://127.0.0.1:1"))
    informers = InformerSet(session, clock=clock, random=Random(1))
    _informers.append(informers)
    member = WatchedCluster(name, session, informers, Rules(), clock)
    for resource, path in lists.items():
        informer, decoder = informers.informer(resource), ObjectDecoder(resource)
        with path.open("rb") as parts:
            for part in parts:
                for item in decoder.items(part.replace(_PREFIX, f"{len(_informers):08x}".encode())).items:
                    informer.put(item)
    for resource in informers.resources:
        informers.informer(resource).set_synced()
    return member


def _lists(directory: Path, nodes: int, pods: int) -> Mapping[ResourceType[Any], Path]:
    """Write the nodes and the pods of any member in small parts, as lists arrive; in memory they would be counted."""
    directory.mkdir(exist_ok=True)
    return {
        SHARED_NODES: _write(directory / "nodes", nodes, realistic.node),
        SHARED_PODS: _write(directory / "pods", pods, lambda number: realistic.running_pod(number, nodes)),
    }


def _write(path: Path, count: int, make: Callable[[int], Json]) -> Path:
    with path.open("wb") as parts:
        for start in range(0, count, _BATCH):
            numbers = range(start, min(start + _BATCH, count))
            parts.write(orjson.dumps([_identify(make(number), number) for number in numbers]) + b"\n")
    return path


def _identify(item: Json, number: int) -> Json:
    """Return the object with a uid and a version as an API server gives them."""
    uid = f"{_PREFIX.decode()}-4000-8000-9000-{number:012x}"
    return {**item, "metadata": {**item["metadata"], "uid": uid, "resourceVersion": str(10_000_000 + number)}}


def _question(kind: str, number: int, clusters_max: int) -> FleetQuestion:
    """Return a question about a template that the number makes its own."""
    spec, cpu = _KINDS[kind]
    container = {"name": "c", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": f"{64 + number}Mi"}}}
    template = {"metadata": {"labels": _APP}, "spec": {"containers": [container], **spec}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "asked", "namespace": "default"},
        "spec": {"replicas": _REPLICAS, "selector": {"matchLabels": _APP}, "template": template},
    }
    return FleetQuestion(read_workload([LocatedManifest(deployment, "asked")]), clusters_max=clusters_max or None)


async def _latency(fleet: WatchedFleet, kind: str, clusters_max: int, questions: int, state: str) -> Latency:
    times: list[float] = []
    answer: Any = None
    question = _question(kind, 0, clusters_max)
    await fleet.ask(question, deadline_s=_DEADLINE_S)
    for number in range(questions):
        if state == CHANGED:
            _change(number)
        started_s = time.perf_counter()
        # Reading a new workload is a part of its answer; those that were asked about before are remembered.
        question = _question(kind, number + 1, clusters_max) if state == NEW else question
        answer = await fleet.ask(question, deadline_s=_DEADLINE_S)
        times.append((time.perf_counter() - started_s) * 1e3)
    times.sort()
    p99_ms = times[int(0.99 * (len(times) - 1))]
    return Latency(kind, clusters_max, state, len(answer.fits), median(times), p99_ms)


def checks(costs: FleetCosts) -> list[Check]:
    """Check the answers, warm, and the memory."""
    size = f"{costs.members} members of {costs.nodes:,} nodes and {costs.pods:,} pods"
    return [
        *(
            at_most(
                f"{size}, {state}, {clusters_max or 'all'} asked for: p99",
                max(
                    item.p99_ms for item in costs.latencies if (item.state, item.clusters_max) == (state, clusters_max)
                ),
                _P99_MS_MAX,
                " ms",
            )
            for state in (UNCHANGED, CHANGED, NEW)
            for clusters_max in (0, 1)
        ),
        at_most(f"{size}: memory", costs.rss_mb, _MB_MAX, " MB"),
    ]


def table(costs: FleetCosts) -> Table:
    rich_table = Table(
        "workload", "clusters asked for", "since the last question", "take it", "p50 ms", "p99 ms", title_justify="left"
    )
    rich_table.title = (
        f"Fleets: {costs.members} members of {costs.nodes:,} nodes and {costs.pods:,} pods, {costs.rss_mb:.0f} MB; "
        f"{_REPLICAS} replicas"
    )
    for latency in costs.latencies:
        rich_table.add_row(
            latency.kind,
            str(latency.clusters_max or "all"),
            latency.state,
            str(latency.clusters),
            f"{latency.p50_ms:.1f}",
            f"{latency.p99_ms:.1f}",
        )
    return rich_table
