"""Replica estimates over gRPC: podium's estimator server and Karmada's, in turn, for the same large member cluster.

Karmada's own client asks, each time for other amounts: first as fast as four callers get answers, for what a question
costs the server, then at a fixed rate whatever comes, for how long an answer takes.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from benchmarks import realistic
from benchmarks.api_server import turns
from benchmarks.cluster import cluster, settle
from benchmarks.etcd import Etcd
from benchmarks.measure import StallError
from benchmarks.medians import medians as medians_of
from benchmarks.nodes import Json
from benchmarks.processor_time import peak_rss_bytes, rss_bytes, wait_quiet
from benchmarks.targets import Check, at_least, at_most
from tests.control_plane.locate import Binaries
from tests.control_plane.processes import ServerProcess, free_ports
from tests.control_plane.servers import ControlPlane

PODIUM: Final = "podium"
KARMADA: Final = "karmada"
NODES: Final = 5_000
PODS: Final = 100_000
RATE: Final = 200

_MEMBER: Final = "member1"
_TAINT: Final = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
_TAINTED_EVERY = 10
_TOLERATION: Final = {"key": "dedicated", "operator": "Exists"}
_IN_TWO_ZONES: Final = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a", "zone-b"]}
CLAIMS: Final[Mapping[str, Json]] = {
    "plain": {},
    "tainted": {"tolerations": [_TOLERATION]},
    "affinity": {"hardNodeAffinity": {"nodeSelectorTerms": [{"matchExpressions": [_IN_TWO_ZONES]}]}},
}
_QUESTIONS = 2_000
_COMPARED = 20
_FLOOD_S = 8.0
# A server that cannot keep up is to be done with what has piled up before it is asked again.
_STEADY_S = 5.0
_ANSWERS_S_MAX = 900.0
_POLL_S = 1.0
_MIB = 1 << 20
_PER_CORE_MIN = 10.0
_P99_MS_MAX = 10.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure."""

    nodes: int
    pods: int
    repeat: int


@dataclass(frozen=True, slots=True)
class Tools:
    """Karmada's client and server."""

    client: Path
    server: Path


@dataclass(frozen=True, slots=True)
class Estimates:
    """How one server answered one kind of question. `p*_ms` and `failed` are at `RATE` questions per second,
    and the times of those that were answered, 0 where none was.

    `rss_mib` is before the first question, `peak_rss_mib` after the last of its kind.
    """

    server: str
    claim: str
    nodes: int
    pods: int
    per_s: float
    cpu_ms: float
    p50_ms: float
    p99_ms: float
    failed: int
    rss_mib: float
    peak_rss_mib: float

    @property
    def per_core_s(self) -> float:
        """Questions answered per second of the server's CPU time."""
        return 1e3 / self.cpu_ms


def measure(plan: Plan, binaries: Binaries, tools: Tools, tell: Callable[[str], None]) -> Iterator[Estimates]:
    """Every server and kind of question, on one control plane. Raises: StallError."""
    tell(f"{plan.nodes:,} nodes and {plan.pods:,} pods: starting a control plane and filling it")
    first_answers: list[Any] = []
    with cluster(binaries, plan.nodes, _node) as plane:
        with Etcd(plane.etcd_address) as etcd:
            etcd.put(realistic.running_pod(number, plan.nodes) for number in range(plan.pods))
        settle(plane)
        for name in turns([PODIUM, KARMADA], plan.repeat):
            server = _Server(name, plane, tools)
            try:
                answers = server.wait_answers()
                first_answers = first_answers or answers
                if answers != first_answers:
                    raise StallError(f"{name} answers otherwise: {_first_difference(first_answers, answers)}")
                # All floods first: what a slow server leaves undone at the rate would count in the next.
                floods = {claim: server.flood(claim) for claim in CLAIMS}
                # An API server is busy for a while after it has listed everything for somebody.
                settle(plane)
                for claim, flood in floods.items():
                    result = server.steady(claim, flood, plan)
                    tell(summary(result))
                    yield result
            finally:
                server.process.stop()
            settle(plane)


def _node(number: int) -> Json:
    manifest = realistic.node(number)
    if number % _TAINTED_EVERY == 0:
        manifest["spec"]["taints"] = [_TAINT]
    return manifest


def questions(claim: str, count: int = _QUESTIONS) -> list[Json]:
    """Questions that differ in their amounts."""
    amounts = ({"cpu": f"{100 + number}m", "memory": f"{64 + number % 512}Mi"} for number in range(count))
    return [
        {"id": _MEMBER, "requirements": {"resourceRequest": amount, "nodeClaim": CLAIMS[claim] or None}}
        for amount in amounts
    ]


@dataclass(frozen=True, slots=True)
class _Flood:
    """What one server made of questions that came as fast as it answered."""

    per_s: float
    cpu_ms: float


class _Server:
    """One that has been started."""

    def __init__(self, name: str, plane: ControlPlane, tools: Tools) -> None:
        port, health = free_ports(2)
        command: Sequence[str | Path] = [tools.server]
        if name == PODIUM:
            command = [sys.executable, "-m", "podium", "estimator", "serve"]
        flags = [f"--kubeconfig={plane.kubeconfig()}", f"--cluster-name={_MEMBER}", f"--server-port={port}"]
        flags += [f"--health-probe-bind-address=127.0.0.1:{health}", "--metrics-bind-address=127.0.0.1:0"]
        self.process = ServerProcess(name, [*command, *flags], plane.directory / f"{name}-{port}.log")
        self._rss_at_rest_mib = 0.0
        self._client = [tools.client, f"-target=127.0.0.1:{port}"]

    def wait_answers(self) -> list[Any]:
        """Answers to a few questions of every kind, once it knows its cluster. Raises: StallError."""
        all_questions = [question for claim in CLAIMS for question in questions(claim, _COMPARED)]
        deadline_s, answers = time.monotonic() + _ANSWERS_S_MAX, []
        while self.process.is_running and time.monotonic() < deadline_s:
            answers = self._run(all_questions[:1])
            if answers and answers[0].get("replicas"):
                wait_quiet(self.process)
                self._rss_at_rest_mib = rss_bytes(self._status()) / _MIB
                return self._run(all_questions)
            time.sleep(_POLL_S)
        raise StallError(f"{self.process.name} gives no answers, but {answers[:1]}:\n{self.process.log_tail()}")

    def flood(self, claim: str) -> _Flood:
        """As fast as the callers get answers. Raises: StallError."""
        before_s = self.process.cpu_s()
        (flood,) = self._run(questions(claim), f"-seconds={_FLOOD_S}")
        cpu_s = self.process.cpu_s() - before_s
        if not flood["answered"] or flood["failed"]:
            raise StallError(f"{self.process.name} has not answered:\n{self.process.log_tail()}")
        return _Flood(flood["answered"] / flood["seconds"], cpu_s / flood["answered"] * 1e3)

    def steady(self, claim: str, flood: _Flood, plan: Plan) -> Estimates:
        """At the rate."""
        (steady,) = self._run(questions(claim), f"-seconds={_STEADY_S}", f"-rate={RATE}")
        wait_quiet(self.process)
        return Estimates(
            server=self.process.name,
            claim=claim,
            nodes=plan.nodes,
            pods=plan.pods,
            per_s=flood.per_s,
            cpu_ms=flood.cpu_ms,
            p50_ms=steady["p50_ms"],
            p99_ms=steady["p99_ms"],
            failed=steady["failed"],
            rss_mib=self._rss_at_rest_mib,
            peak_rss_mib=peak_rss_bytes(self._status()) / _MIB,
        )

    def _status(self) -> str:
        return Path(f"/proc/{self.process.pid}/status").read_text()

    def _run(self, questions_asked: Iterable[Json], *flags: str) -> list[Any]:
        lines = "\n".join(map(json.dumps, questions_asked))
        result = subprocess.run([*self._client, *flags], input=lines, capture_output=True, text=True, check=False)
        return [json.loads(line) for line in result.stdout.splitlines()]


def _first_difference(first_answers: Sequence[Any], other_answers: Sequence[Any]) -> str:
    return next(
        f"{theirs} for {ours}" for ours, theirs in zip(first_answers, other_answers, strict=True) if ours != theirs
    )


def summary(row: Estimates) -> str:
    """One kind of question in one line."""
    return (
        f"{row.server}, {row.claim}: {row.cpu_ms:.2f} ms of CPU, p99 {_time(row.p99_ms)} ms at {RATE}/s, "
        f"{row.rss_mib:,.0f} MiB"
    )


def _time(ms: float) -> str:
    """The time that an answer took; nothing where every question at the rate failed."""
    return f"{ms:,.1f}" if ms else "-"


def medians(estimates: Iterable[Estimates]) -> list[Estimates]:
    """One for each server and kind of question."""
    return medians_of(estimates, lambda row: (row.server, row.claim))


def checks(figures: Iterable[Estimates]) -> Iterator[Check]:
    """Whether podium is that much better than Karmada."""
    by_kind = {(figure.server, figure.claim): figure for figure in figures}
    for claim in CLAIMS:
        podium, karmada = by_kind.get((PODIUM, claim)), by_kind.get((KARMADA, claim))
        if podium is None or karmada is None:
            continue
        about = f"estimates, {claim}, {podium.nodes:,} nodes: "
        yield at_least(f"{about}questions per core", podium.per_core_s / karmada.per_core_s, _PER_CORE_MIN, "×")
        yield at_most(f"{about}p99 at {RATE}/s", podium.p99_ms or math.inf, _P99_MS_MAX, " ms")
        yield at_most(f"{about}memory", podium.rss_mib / karmada.rss_mib, 1.0, "×")


def table(figures: Sequence[Estimates]) -> Table:
    """What people read."""
    about = f"Estimates for {figures[0].nodes:,} nodes and {figures[0].pods:,} running pods"
    rich_table = Table(title=about, title_justify="left")
    rich_table.add_column("server")
    rich_table.add_column("replicas")
    headings = ("CPU ms per question", "questions/s per core", "answered/s", f"p50 ms at {RATE}/s", "p99 ms")
    for heading in (*headings, "failed", "MiB at rest", "peak MiB"):
        rich_table.add_column(heading, justify="right")
    for figure in figures:
        rich_table.add_row(
            figure.server,
            figure.claim,
            f"{figure.cpu_ms:.2f}",
            f"{figure.per_core_s:,.0f}",
            f"{figure.per_s:,.0f}",
            _time(figure.p50_ms),
            _time(figure.p99_ms),
            f"{figure.failed:,}",
            f"{figure.rss_mib:,.0f}",
            f"{figure.peak_rss_mib:,.0f}",
        )
    return rich_table
