"""Starts the members of a trial, and runs it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from podium.estimator.client.channels import ClientTls
from podium.estimator.client.connections import open_connections
from podium.sandbox.fill import varied_nodes
from tests.control_plane.processes import ServerProcess, free_ports
from tests.estimator_chaos import liars
from tests.estimator_chaos.members import (
    HOST,
    Certificates,
    Member,
    Question,
    karmada_command,
    podium_command,
    questions,
    random_nodes,
    right_answers,
)
from tests.estimator_chaos.trial import Report, Trial
from tests.integration.client.certificates import Authority

_NODES: Final = 12


@dataclass(frozen=True, slots=True)
class Plan:
    """What is tried.

    Attributes:
        askers: how many questions are asked at once.
        timeout_s: for each question.
        karmada: Karmada's server; None without members that have it.
    """

    questions: int
    members: int
    karmada_members: int
    askers: int
    timeout_s: float
    seed: int
    karmada: Path | None = None


async def try_fleet(plan: Plan, directory: Path) -> Report:
    """Run the trial. Its servers write their logs into the directory."""
    random = Random(plan.seed)
    question_list = questions(random)
    with _Fleet(plan, directory, random, question_list).start() as fleet:
        certificate, key = (path.read_bytes() for path in fleet.authority.issue("client"))
        tls = ClientTls(fleet.authority.file.read_bytes(), certificate, key)
        async with open_connections(tls) as connections:
            trial = Trial(connections, fleet.members, fleet.liars, question_list, plan.timeout_s, random)
            return await trial.run(plan.questions, plan.askers)


class _Fleet:
    """The members' servers, and those that lie."""

    def __init__(self, plan: Plan, directory: Path, random: Random, question_list: list[Question]) -> None:
        self._directory = directory
        self._random = random
        self._questions = question_list
        self.authority = Authority(self._folder("authority"))
        self._impostor = Authority(self._folder("impostor"))
        self._stack = ExitStack()
        self._plan = plan
        self.members: list[Member] = []
        self.liars: dict[str, str] = {}

    def _folder(self, name: str) -> Path:
        path = self._directory / name
        path.mkdir()
        return path

    @contextmanager
    def start(self) -> Iterator[_Fleet]:
        """Start all servers, without waiting for them, and yield the fleet. At the end all are killed."""
        with self._stack:
            self._start_liars()
            for number in range(self._plan.members):
                self._add_podium(f"member-{number}")
            for number in range(self._plan.karmada_members):
                self._add_karmada(f"karmada-{number}", number)
            yield self

    def _start_liars(self) -> None:
        ports = free_ports(len(liars.NAMES))
        certificate, key = self.authority.issue("liars", ip=HOST)
        command = [sys.executable, "-m", "tests.estimator_chaos.liars", str(certificate), str(key), *map(str, ports)]
        process = ServerProcess("liars", command, self._directory / "liars.log")
        self._stack.callback(process.kill)
        self.liars = {name: f"{HOST}:{port}" for name, port in zip(liars.NAMES, ports, strict=True)}

    def _add_podium(self, name: str) -> None:
        (port,) = free_ports(1)
        nodes, folder = random_nodes(self._random), self._folder(name)
        command = podium_command(name, port, nodes, folder)
        self._add(name, port, command, right_answers(nodes, self._questions), folder)

    def _add_karmada(self, name: str, seed: int) -> None:
        (port,) = free_ports(1)
        folder = self._folder(name)
        kubeconfig = folder / "kubeconfig"
        command = [sys.executable, "-m", "podium", "sandbox", f"--nodes={_NODES}", f"--seed={seed}"]
        sandbox = ServerProcess("sandbox", [*command, f"--write-kubeconfig={kubeconfig}"], folder / "sandbox.log")
        self._stack.callback(sandbox.kill)
        sandbox.wait_ready(lambda: "Serving on" in sandbox.log.read_text())
        assert self._plan.karmada is not None, "these members need Karmada's server"
        answers = right_answers(varied_nodes(_NODES, seed), self._questions)
        self._add(name, port, karmada_command(self._plan.karmada, name, port, kubeconfig), answers, folder)

    def _add(self, name: str, port: int, command: list[str | Path], answers: list[int], folder: Path) -> None:
        certificates = Certificates(self.authority, self._impostor, folder)
        certificates.renew()
        member = Member(name, f"{HOST}:{port}", command, answers, certificates, folder / "server.log")
        self.members.append(member)
        member.start()
        self._stack.callback(member.end)
