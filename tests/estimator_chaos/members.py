"""Members of a trial: estimator servers as processes of their own, and what they have to answer."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from random import Random
from typing import Any, Final

import anyio
import anyio.to_thread
import msgspec

from podium.estimator.division.bindings import BindingSpec
from podium.estimator.manifests import member_of
from podium.estimator.member import Gates, MemberCluster
from tests.control_plane.processes import ServerProcess, free_ports
from tests.integration.client.certificates import Authority

Json = dict[str, Any]
HOST: Final = "127.0.0.1"
_NODES: Final = 12
_SPECS: Final = 40
_SETS_EVERY: Final = 4


@dataclass(frozen=True, slots=True)
class Question:
    """What all members are asked at once."""

    spec: BindingSpec
    in_sets: bool


def questions(random: Random) -> list[Question]:
    """Questions of both kinds, with other amounts and node claims each."""
    return [Question(_spec(random), number % _SETS_EVERY == 0) for number in range(_SPECS)]


def _spec(random: Random) -> BindingSpec:
    requirements: Json = {"resourceRequest": {"cpu": f"{random.randint(1, 20) * 250}m"}}
    if random.random() < 0.5:
        requirements["resourceRequest"]["memory"] = f"{random.randint(1, 16) * 256}Mi"
    if random.random() < 0.5:
        requirements["nodeClaim"] = {"nodeSelector": {"disk": random.choice(["ssd", "hdd"])}}
    resource = {"kind": "Deployment", "namespace": "shop", "name": f"web-{random.randint(0, 999)}"}
    component = {"name": "web", "replicas": random.randint(1, 3), "replicaRequirements": requirements}
    content = {"resource": resource, "replicaRequirements": requirements, "components": [component]}
    return msgspec.convert(content, BindingSpec)


def random_nodes(random: Random) -> list[Json]:
    """The nodes of a member."""
    return [_node(f"node-{number}", random) for number in range(random.randint(1, _NODES))]


def _node(name: str, random: Random) -> Json:
    amounts = {"cpu": str(random.randint(1, 64)), "memory": f"{random.randint(2, 256)}Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"disk": random.choice(["ssd", "hdd"])}},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def right_answers(nodes: Sequence[Json], question_list: Sequence[Question]) -> list[int]:
    """What the member has to answer to each of the questions."""
    cluster = member_of(nodes, Gates())
    return [_right_answer(cluster, question) for question in question_list]


def _right_answer(cluster: MemberCluster, question: Question) -> int:
    spec = question.spec
    if question.in_sets:
        return cluster.max_available_component_sets(spec.components, spec.resource.namespace)
    return cluster.max_available_replicas(spec.replica_requirements)


@dataclass(slots=True)
class Certificates:
    """The files of one member's server, written anew for every process or while one runs."""

    authority: Authority
    impostor: Authority
    directory: Path
    _count: int = 0

    @property
    def flags(self) -> list[str]:
        """The flags of podium's server, and of Karmada's."""
        return [
            f"--grpc-auth-cert-file={self.directory / 'server.crt'}",
            f"--grpc-auth-key-file={self.directory / 'server.key'}",
            f"--grpc-client-ca-file={self.authority.file}",
        ]

    def renew(self, *, is_right: bool = True) -> None:
        """Replace the files by a new pair, of the authority that clients trust or of another one."""
        self._count += 1
        issuer = self.authority if is_right else self.impostor
        pair = issuer.issue(f"{self.directory.name}-{self._count}", ip=HOST)
        for path, name in zip(pair, ("server.crt", "server.key"), strict=True):
            os.replace(path, self.directory / name)


@dataclass(slots=True, eq=False)
class Member:
    """One member: its server, and since when it cannot answer.

    Attributes:
        command: of its server, without the flags of certificates.
        answers: the right answer to each question; -1 is right at any time.
        unavailable_since_s: no question that begins after this may be answered; `inf` while it can be.
        is_proven: it has answered since its last trouble.
    """

    name: str
    address: str
    command: Sequence[str | Path]
    answers: Sequence[int]
    certificates: Certificates
    log: Path
    process: ServerProcess | None = None
    unavailable_since_s: float = inf
    is_proven: bool = False

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def start(self) -> None:
        """Start its server; it can answer from now on."""
        self.unavailable_since_s = inf
        self._run()

    def start_as_impostor(self) -> None:
        """Start its server with a certificate that nobody may trust."""
        self.certificates.renew(is_right=False)
        self._run()

    def _run(self) -> None:
        self.process = ServerProcess(self.name, [*self.command, *self.certificates.flags], self.log)

    async def kill(self) -> None:
        """End its server as if the machine died."""
        if self.process is not None:
            await anyio.to_thread.run_sync(self.process.kill)
            self.make_unavailable()

    def end(self) -> None:
        """End its server for good."""
        if self.process is not None:
            self.process.kill()

    async def stop(self) -> None:
        """Let its server end by itself."""
        if self.process is not None:
            await anyio.to_thread.run_sync(self.process.stop)
            self.make_unavailable()

    def make_unavailable(self) -> None:
        """Note that it cannot answer from now on."""
        self.unavailable_since_s = min(self.unavailable_since_s, anyio.current_time())

    def signal(self, number: signal.Signals) -> None:
        """Send its server a signal."""
        assert self.process is not None
        os.kill(self.process.pid, number)


def podium_command(name: str, port: int, nodes: Sequence[Json], directory: Path) -> list[str | Path]:
    """Return the command of podium's own server for these nodes."""
    cases = directory / "cases.jsonl"
    cases.write_text(json.dumps({"id": name, "objects": list(nodes)}) + "\n")
    command: list[str | Path] = [sys.executable, "-m", "podium", "estimator", "serve", f"--cases={cases}"]
    return [*command, f"--bind-address={HOST}", *_ports(port), "--logging-format=json"]


def karmada_command(binary: Path, name: str, port: int, kubeconfig: Path) -> list[str | Path]:
    """Return the command of Karmada's server for the cluster of this kubeconfig."""
    return [binary, f"--kubeconfig={kubeconfig}", f"--cluster-name={name}", *_ports(port)]


def _ports(port: int) -> list[str]:
    (health,) = free_ports(1)
    return [
        f"--server-port={port}",
        f"--health-probe-bind-address={HOST}:{health}",
        f"--metrics-bind-address={HOST}:0",
    ]
