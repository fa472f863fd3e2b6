"""A trial: many questions to members that are killed, hang, restart, get other certificates, leave and come back.

An answer may be late only by as much as the event loop of this process was held up, which a pulse measures.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from random import Random
from typing import Final

import anyio

from podium.estimator.client.asking import ask_members
from podium.estimator.client.connections import DIAL_S, Connections
from tests.estimator_chaos.members import Member, Question
from tests.integration.estimator.servers import DEAD, open_channels
from tests.soak.growth import Sample, sample

_PULSE_S: Final = 0.01
_LATE_S: Final = 0.1
_PROOF_S_MAX: Final = 150.0
"""A client that has failed often waits for half a minute before it tries again, and servers start slowly here."""
_LOOK_S: Final = 0.2
_PAUSE_S: Final = (0.1, 1.5)
_TROUBLE_S: Final = (0.2, 2.0)
_IMPOSTOR_S: Final = (2.0, 5.0)
_FLAP_S: Final = (0.0, 0.3)
_FLAPS: Final = 6
_FAULTS_MAX: Final = 20
_SLACKS: Final = {"tasks": 0, "threads": 8, "descriptors": 4, "rss_mib": 15.0}
"""By so much more of each nothing has grown. Threads that wait for servers to end go some time after their work."""
_ESTABLISHED: Final = "01"


@dataclass(slots=True)
class Report:
    """The outcome of a trial.

    Attributes:
        answer_counts: of each member, the answers other than -1.
        late_s: by how much the latest answer missed its deadline, less the time that the event loop was held up.
        samples: of this process, when all members answered after a third of the questions, and at the end.
        faults: answers that are wrong or late, members that never came back, and leaks.
    """

    question_count: int = 0
    answer_counts: Counter[str] = field(default_factory=Counter)
    troubles: Counter[str] = field(default_factory=Counter)
    late_s: float = -inf
    samples: list[Sample] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def add_fault(self, text: str) -> None:
        """Add a fault. A broken client has thousands of them, of which the first ones say enough."""
        if len(self.faults) < _FAULTS_MAX:
            self.faults.append(text)


class Trial:
    """Asks the members while they are in trouble.

    Args:
        liars: by name, the address of a server whose answers must never count.
        timeout_s: for each question.
    """

    def __init__(
        self,
        connections: Connections,
        members: Sequence[Member],
        liars: Mapping[str, str],
        questions: Sequence[Question],
        timeout_s: float,
        random: Random,
    ) -> None:
        self.report = Report()
        self._connections = connections
        self._members = {member.name: member for member in members}
        self._questions = questions
        self._timeout_s = timeout_s
        self._random = random
        self._targets = {member.name: [member.address] for member in members}
        self._targets |= {name: [address] for name, address in liars.items()}
        self._names = set(self._targets)
        self._held_up_s = 0.0
        self._is_over = False
        self._troubles: Mapping[str, Callable[[Member, Random], Awaitable[None]]] = {
            "killed": self._kill,
            "hung": self._hang,
            "restarted": self._restart,
            "certificate renewed": self._renew,
            "certificate of another authority": self._impersonate,
            "left": self._leave,
            "came and went": self._flap,
            "renamed": self._rename,
            "moved": self._move,
        }

    async def run(self, count: int, askers: int) -> Report:
        """Ask so many questions, so many at once, in two rounds. After each, every member has to answer again."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._pulse)
            self._follow()
            await self._prove_all()
            for share in (count // 3, count - count // 3):
                await self._play(share, askers)
                await self._prove_all()
                # Connections that were given up are closed by then.
                await anyio.sleep(DIAL_S + 1.0)
                self.report.samples.append(self._sample())
            self._find_leaks()
            group.cancel_scope.cancel()
        return self.report

    async def _play(self, count: int, askers: int) -> None:
        numbers = iter(range(count))
        self._is_over = False
        async with anyio.create_task_group() as group:
            for member in self._members.values():
                group.start_soon(self._trouble_again_and_again, member, Random(self._random.random()))
            async with anyio.create_task_group() as asking:
                for _ in range(askers):
                    asking.start_soon(self._ask_each, numbers)
            self._is_over = True

    async def _ask_each(self, numbers: Iterator[int]) -> None:
        for _ in numbers:
            await self._ask(sorted(self._names))

    async def _ask(self, names: Sequence[str]) -> None:
        """Ask the members one question, and check every answer."""
        report, number = self.report, self._random.randrange(len(self._questions))
        question = self._questions[number]
        start_s, held_up_s = anyio.current_time(), self._held_up_s
        answers = await ask_members(self._connections, names, question.spec, self._timeout_s, in_sets=question.in_sets)
        taken_s = anyio.current_time() - start_s
        late_s = taken_s - self._timeout_s - (self._held_up_s - held_up_s)
        report.question_count += 1
        report.late_s = max(report.late_s, late_s)
        if late_s > _LATE_S:
            report.add_fault(f"an answer took {taken_s:.3f} s, {late_s:.3f} s too long")
        if taken_s < self._timeout_s and any(text.startswith("no answer within") for text in answers.errors.values()):
            report.add_fault(f"members are given up after {taken_s:.3f} s")
        if answers.replicas.keys() != set(names):
            report.add_fault(f"answers of {sorted(answers.replicas)} instead of {names}")
        for name, answer in answers.replicas.items():
            self._check(name, number, answer, start_s)
            if (answer == -1) is not (name in answers.errors):
                report.add_fault(f"{name} answers {answer}, with the error {answers.errors.get(name)!r}")

    def _check(self, name: str, number: int, answer: int, start_s: float) -> None:
        if answer == -1:
            return
        self.report.answer_counts[name] += 1
        member = self._members.get(name)
        if member is None:
            self.report.add_fault(f"{name}, which lies, is believed that {answer} fit")
        elif answer != member.answers[number]:
            self.report.add_fault(f"{name} answers {answer} instead of {member.answers[number]}")
        elif start_s > member.unavailable_since_s:
            self.report.add_fault(f"{name} answers, though it is away or has a wrong certificate")
        else:
            member.is_proven = True

    async def _pulse(self) -> None:
        while True:
            start_s = anyio.current_time()
            await anyio.sleep(_PULSE_S)
            self._held_up_s += max(anyio.current_time() - start_s - 2 * _PULSE_S, 0.0)

    async def _prove_all(self) -> None:
        async with anyio.create_task_group() as group:
            for member in self._members.values():
                group.start_soon(self._prove, member)

    async def _prove(self, member: Member) -> None:
        """Ask the member until it answers."""
        member.is_proven = False
        with anyio.move_on_after(_PROOF_S_MAX) as scope:
            while not member.is_proven:
                await self._ask([member.name])
                await anyio.sleep(_LOOK_S)
        if scope.cancelled_caught:
            self.report.add_fault(f"{member.name} is up, and does not answer for {_PROOF_S_MAX:g} s")

    # ---------------------------------------------------------------- troubles

    async def _trouble_again_and_again(self, member: Member, random: Random) -> None:
        while not self._is_over:
            name = random.choice(list(self._troubles))
            self.report.troubles[name] += 1
            await self._troubles[name](member, random)
            await self._prove(member)
            await anyio.sleep(random.uniform(*_PAUSE_S))

    async def _kill(self, member: Member, random: Random) -> None:
        await member.kill()
        await anyio.sleep(random.uniform(*_TROUBLE_S))
        member.start()

    async def _hang(self, member: Member, random: Random) -> None:
        member.signal(signal.SIGSTOP)
        await anyio.sleep(random.uniform(*_TROUBLE_S) * self._timeout_s)
        member.signal(signal.SIGCONT)

    async def _restart(self, member: Member, random: Random) -> None:
        await member.stop()
        member.start()

    async def _renew(self, member: Member, random: Random) -> None:
        member.certificates.renew()
        # The next connection meets the new certificate.
        await self._leave(member, random)

    async def _impersonate(self, member: Member, random: Random) -> None:
        await member.kill()
        member.start_as_impostor()
        await anyio.sleep(random.uniform(*_IMPOSTOR_S))
        await member.kill()
        member.certificates.renew()
        member.start()

    async def _leave(self, member: Member, random: Random) -> None:
        await self._be_away(member, random.uniform(*_TROUBLE_S))

    async def _flap(self, member: Member, random: Random) -> None:
        for _ in range(_FLAPS):
            await self._be_away(member, random.uniform(*_FLAP_S))
            await anyio.sleep(random.uniform(*_FLAP_S))

    async def _be_away(self, member: Member, duration_s: float) -> None:
        targets = self._targets.pop(member.name)
        self._follow()
        member.make_unavailable()
        await anyio.sleep(duration_s)
        self._come_back(member, targets)

    async def _rename(self, member: Member, random: Random) -> None:
        """Let the member be known by a name that its server does not have."""
        other_name = f"{member.name}-renamed"
        targets = self._targets[other_name] = self._targets.pop(member.name)
        self._names.add(other_name)
        self._follow()
        member.make_unavailable()
        await anyio.sleep(random.uniform(*_TROUBLE_S))
        del self._targets[other_name]
        self._names.discard(other_name)
        self._come_back(member, targets)

    async def _move(self, member: Member, random: Random) -> None:
        """Let a dead address come before the member's own one."""
        self._targets[member.name] = [DEAD, member.address]
        self._follow()
        await anyio.sleep(random.uniform(*_TROUBLE_S))
        self._targets[member.name] = [member.address]
        self._follow()

    def _come_back(self, member: Member, targets: list[str]) -> None:
        member.unavailable_since_s = inf
        self._targets[member.name] = targets
        self._follow()

    def _follow(self) -> None:
        self._connections.follow(self._targets)

    # ---------------------------------------------------------------- leaks

    def _sample(self) -> Sample:
        tasks = len(asyncio.all_tasks())
        return sample(os.getpid(), seconds=anyio.current_time(), pods=self.report.question_count, tasks=tasks)

    def _find_leaks(self) -> None:
        report = self.report
        first, last = report.samples
        for name, slack in _SLACKS.items():
            was, latest = getattr(first, name), getattr(last, name)
            if latest > was + slack:
                report.add_fault(f"{name} have grown from {was:g} to {latest:g}")
        channel_count, target_count = open_channels(), len(self._targets)
        if channel_count > target_count:
            report.add_fault(f"{channel_count} channels are open to {target_count} members")
        for member in self._members.values():
            if (count := _connections_at(member.port)) != 1:
                report.add_fault(f"{member.name} has {count} connections")


def _connections_at(port: int) -> int:
    """Return how many connections a server on this port of the machine has (Linux only)."""
    tables = (Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6"))
    rows = [line.split() for table in tables for line in table]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == _ESTABLISHED for row in rows)
