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
from podium.objects.resource_types import EventResource
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

    question_count: int = 0
    differing: list[Difference] = field(default_factory=list)

    @property
    def alike(self) -> int:
        return self.question_count - len(self.differing)


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
    question_file: Path,
    keeping: Keeping,
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
    with question_file.open("wb") as lines:
        lines.writelines(orjson.dumps(question) + b"\n" for question in questions)
    evaluator, outcome = evaluator_of(minor), Outcome()
    with question_file.open("rb") as lines:
        for line, upstream_answer in zip(lines, recorder.answers(binary, question_file), strict=True):
            outcome.question_count += 1
            answer_differences = tuple(_differing(line, upstream_answer, evaluator))
            if answer_differences:
                question = {**orjson.loads(line), "expect": upstream_answer}
                file = keeping.keep(f"{upstream_answer['id']}.jsonl", orjson.dumps(question) + b"\n")
                if has_chance and _is_among(recorder.answers(binary, _again(question_file, line)), line, evaluator):
                    file.unlink()
                    continue
                outcome.differing.append(Difference(upstream_answer["id"], answer_differences, file))
    return outcome


def _again(question_file: Path, line: bytes) -> Path:
    """Return a file in which one question is asked many times."""
    path = question_file.with_suffix(".again")
    path.write_bytes(line * _TIMES)
    return path


def _is_among(answers: Iterable[Json], line: bytes, evaluator: Evaluator) -> bool:
    alike = [not tuple(_differing(line, upstream_answer, evaluator)) for upstream_answer in answers]
    return any(alike)


def _differing(line: bytes, upstream_answer: Json, evaluator: Evaluator) -> Iterator[str]:
    answer = evaluator.answer_line(line, "")
    if _BROKEN_POOL in upstream_answer.get("error", "") and "error" not in answer:
        return iter(())  # on purpose: see `Differs` in podium.plugins.dynamic_resources.plugin
    answer = as_json(without_unrecorded(answer, upstream_answer))
    if _is_of_another_pod(orjson.loads(line)):
        _queue_as_upstream(answer, upstream_answer)
    for answer_value in (upstream_answer, answer):
        order_reasons(answer_value)
    return differences(comparable(upstream_answer), comparable(_without_special_claim(answer)))


def _is_of_another_pod(question: Json) -> bool:
    """Return True if what changes is a pod that is not the waiting one."""
    pod = question.get("event", {}).get("new") or {}
    return pod.get("kind") == "Pod" and pod["metadata"]["uid"] != question["pod"]["metadata"]["uid"]


def _queue_as_upstream(answer: Json, upstream_answer: Json) -> None:
    """Queue where upstream takes a change of another pod for one of the waiting pod itself.

    Podium skips such a change on purpose: see `Differs` in podium.plugins.shared.hints. Any other hint stays compared.
    """
    for label, upstream_hints in upstream_answer.get("hints", {}).items():
        hints = answer.get("hints", {}).get(label, {})
        if label.startswith(EventResource.TARGET_POD.value):
            hints |= {plugin: "Queue" for plugin in hints if upstream_hints.get(plugin) == "Queue"}


def order_reasons(answer: Json) -> None:
    """Sort what NodeResourcesFit says of scalar resources, last of all: upstream takes them from a map, by chance."""
    for status in answer.get("filter", {}).values():
        if status["plugin"] == "NodeResourcesFit":
            ordered_reasons = list(takewhile(_ORDERED_REASONS.__contains__, status["reasons"]))
            status["reasons"] = ordered_reasons + sorted(status["reasons"][len(ordered_reasons) :])


def _without_special_claim(answer: Json) -> Json:
    """The answer without the claim for extended resources: the recorder cannot see it, which has no name yet."""
    answer.pop("extended", None)
    for claims in answer.get("allocations", {}).values():
        claims.pop(_SPECIAL_CLAIM, None)
    return answer


def compare_configurations(
    files: Iterable[tuple[str, str]], binary: Path, keeping: Keeping, minor: str = NEWEST.minor
) -> Outcome:
    """Have kube-scheduler read them, as many at a time as there are cores."""
    named_texts = list(files)
    outcome = Outcome(question_count=len(named_texts))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = pool.map(lambda named_text: kube_scheduler.verdict(binary, named_text[1]), named_texts)
        for (name, text), verdict in zip(named_texts, verdicts, strict=True):
            if config_differences := tuple(configured.differences(verdict, text, minor)):
                file = keeping.keep(f"{name}.yaml", text.encode())
                outcome.differing.append(Difference(name, config_differences, file))
    return outcome
