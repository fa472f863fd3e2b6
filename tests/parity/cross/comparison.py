"""Questions asked of upstream and of podium, and what they answer differently."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

import orjson

from podium.config import NEWEST
from podium.insight.evaluate import Evaluator
from tests.parity import configured
from tests.parity.cross import kube_scheduler, recorder
from tests.parity.cross.drawing import Json
from tests.parity.recorded import (
    DATA,
    as_json,
    comparable,
    differences,
    evaluator_of,
    scenarios,
    without_unrecorded,
)

_ORDERED_REASONS = ("Too many pods", "Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage")
_BROKEN_POOL = "asks for all devices, but resource pool "
_TIMES = 20
_SPECIAL_CLAIM = "<extended-resources>"


@dataclass(frozen=True, slots=True)
class Difference:
    """One question that is answered differently: where, and the file to ask it again with."""

    id: str
    lines: tuple[str, ...]
    file: Path


@dataclass(slots=True)
class Outcome:
    """Of all questions of a kind."""

    asked: int = 0
    differing: list[Difference] = field(default_factory=list)

    @property
    def alike(self) -> int:
        return self.asked - len(self.differing)


class Keeping:
    """Keeps questions in a directory, which is made for the first one."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def keep(self, name: str, content: bytes) -> Path:
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / name
        path.write_bytes(content)
        return path


def recorded_questions(name: str) -> list[Json]:
    return [{**question, "expect": None} for question, _ in scenarios(name)]


def recorded_files() -> list[str]:
    with gzip.open(DATA / "config-1.36.2.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line)["yaml"] for line in lines]


def compare_answers(
    questions: Iterable[Json],
    binary: Path,
    asked: Path,
    kept: Keeping,
    minor: str = NEWEST.minor,
    *,
    has_chance: bool = False,
) -> Outcome:
    """Have the recorder answer them, and podium while it does.

    Args:
        asked: a file to write the questions to.
        has_chance: upstream may choose by chance, so a question counts as answered differently only if it is asked
            again many times and no answer is podium's.
    """
    with asked.open("wb") as lines:
        lines.writelines(orjson.dumps(question) + b"\n" for question in questions)
    evaluator, outcome = evaluator_of(minor), Outcome()
    with asked.open("rb") as lines:
        for line, expected in zip(lines, recorder.answers(binary, asked), strict=True):
            outcome.asked += 1
            found = tuple(_differing(expected, evaluator.answer_line(line, "")))
            if found:
                question = {**orjson.loads(line), "expect": expected}
                file = kept.keep(f"{expected['id']}.jsonl", orjson.dumps(question) + b"\n")
                if has_chance and _is_among(recorder.answers(binary, _again(asked, line)), line, evaluator):
                    file.unlink()
                    continue
                outcome.differing.append(Difference(expected["id"], found, file))
    return outcome


def _again(asked: Path, line: bytes) -> Path:
    """A file in which one question is asked many times."""
    path = asked.with_suffix(".again")
    path.write_bytes(line * _TIMES)
    return path


def _is_among(answers: Iterable[Json], line: bytes, evaluator: Evaluator) -> bool:
    alike = [not tuple(_differing(expected, evaluator.answer_line(line, ""))) for expected in answers]
    return any(alike)


def _differing(expected: Json, answer: Json) -> Iterator[str]:
    if _BROKEN_POOL in expected.get("error", "") and "error" not in answer:
        return iter(())  # on purpose: see `Differs` in podium.plugins.dynamic_resources.plugin
    answer = as_json(without_unrecorded(answer, expected))
    for each in (expected, answer):
        _order_reasons(each)
    return differences(comparable(expected), comparable(_without_special_claim(answer)))


def _order_reasons(answer: Json) -> None:
    """Sort what NodeResourcesFit says of scalar resources, last of all: upstream takes them from a map, by chance."""
    for status in answer.get("filter", {}).values():
        if status["plugin"] == "NodeResourcesFit":
            ordered = list(takewhile(_ORDERED_REASONS.__contains__, status["reasons"]))
            status["reasons"] = ordered + sorted(status["reasons"][len(ordered) :])


def _without_special_claim(answer: Json) -> Json:
    """The answer without the claim for extended resources: the recorder cannot see it, which has no name yet."""
    answer.pop("extended", None)
    for claims in answer.get("allocations", {}).values():
        claims.pop(_SPECIAL_CLAIM, None)
    return answer


def compare_configurations(
    files: Iterable[tuple[str, str]], binary: Path, kept: Keeping, minor: str = NEWEST.minor
) -> Outcome:
    """Have kube-scheduler read them, as many at a time as there are cores."""
    named = list(files)
    outcome = Outcome(asked=len(named))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = pool.map(lambda each: kube_scheduler.verdict(binary, each[1]), named)
        for (name, text), verdict in zip(named, verdicts, strict=True):
            if found := tuple(configured.differences(verdict, text, minor)):
                file = kept.keep(f"{name}.yaml", text.encode())
                outcome.differing.append(Difference(name, found, file))
    return outcome
