"""Questions of one seed, recorded on real control planes and put to podium."""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from podium.lib.lifeline import end_with_pool_owner
from tests.control_plane.client import ApiError
from tests.control_plane.locate import Binaries
from tests.parity.workloads.comparison import ask_podium, differences
from tests.parity.workloads.naming import Json
from tests.parity.workloads.outcome import comparable
from tests.parity.workloads.plan import Plan
from tests.parity.workloads.plane import Plane, RestlessError
from tests.parity.workloads.questions import draw_plan
from tests.parity.workloads.recording import record


@dataclass(frozen=True, slots=True)
class Answered:
    """A question, and where podium's answer differs."""

    question: Json
    differences: Sequence[str]


@dataclass(slots=True)
class Tally:
    """One question and its answer.

    Attributes:
        dropped: why questions were not kept: the number of each reason's first words.
    """

    results: list[Answered] = field(default_factory=list)
    drop_counts: Counter[str] = field(default_factory=Counter)

    @property
    def wrong(self) -> list[Answered]:
        return [result for result in self.results if result.differences]

    def lines(self) -> Iterator[str]:
        """The table of agreement: per category how many were asked and in how many nothing differs."""
        rows: dict[str, Counter[str]] = {}
        for result in self.results:
            parts = {difference.partition(":")[0] for difference in result.differences}
            for category in (result.question["category"], "all"):
                row = rows.setdefault(category, Counter())
                row["asked"] += 1
                row["nodes"] += parts <= {"names", "texts"}
                row["whole"] += not parts
        yield f"{'category':<20}{'asked':>6}{'nodes':>6}{'whole':>6}"
        for category in sorted(rows, key=lambda name: (name == "all", name)):
            row = rows[category]
            yield f"{category:<20}{row['asked']:>6}{row['nodes']:>6}{row['whole']:>6}"
        if self.drop_counts:
            reasons = ", ".join(f"{count} because {reason}" for reason, count in self.drop_counts.most_common())
            yield f"not kept: {reasons}"


def answer(question: Json) -> Answered:
    """Ask podium in this process."""
    with tempfile.TemporaryDirectory(prefix="podium-workloads-") as directory:
        return Answered(question, differences(question, ask_podium(question, Path(directory))))


async def ask(
    binaries: Binaries, seed: int, numbers: Iterator[int], count: int, planes: int, report: Callable[[Answered], None]
) -> Tally:
    """Record and ask until so many questions are answered, or there are no more numbers.

    Args:
        planes: how many control planes run side by side.
        report: is called for each question that was answered.
    """
    tally = Tally()
    # A process of its own: the stand-ins for kubelets must not wait for podium.
    context = get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context, initializer=end_with_pool_owner) as pool:

        async def work() -> None:
            async with Plane.running(binaries) as plane:
                for number in numbers:
                    if len(tally.results) >= count:
                        break
                    result = await _recorded_and_answered(plane, draw_plan(seed, number), pool, tally.drop_counts)
                    if result is not None and len(tally.results) < count:
                        tally.results.append(result)
                        report(result)

        async with asyncio.TaskGroup() as group:
            for _ in range(planes):
                group.create_task(work())
    return tally


async def _recorded_and_answered(
    plane: Plane, plan: Plan, pool: ProcessPoolExecutor, drop_counts: Counter[str]
) -> Answered | None:
    """The answered question; None if the control plane does not always give the same answer."""
    try:
        question = await record(plane, plan, is_otherwise=False)
        answers = [comparable(question), comparable(await record(plane, plan, is_otherwise=True))]
        answer_result = await asyncio.get_running_loop().run_in_executor(pool, answer, question)
        if answer_result.differences and answers[0] == answers[1]:
            # Before podium is said to be wrong, the control plane is asked once more.
            answers.append(comparable(await record(plane, plan, is_otherwise=False)))
    except RestlessError as problem:
        drop_counts[str(problem).partition(":")[0]] += 1
        return None
    except ApiError as problem:
        drop_counts[f"the API server refuses what is there before the step ({problem.reason})"] += 1
        return None
    if any(later_answer != answers[0] for later_answer in answers[1:]):
        drop_counts["the same came not twice"] += 1
        return None
    return answer_result


def numbers_from(first: int) -> Iterator[int]:
    return itertools.count(first)


def read_questions(path: Path) -> list[Json]:
    """The questions that were kept in a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
