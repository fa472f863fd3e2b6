"""All questions, the file of their answers, and the program that answers them.

An answer counts if Karpenter has given it in any of several runs: where it walks a map, the order is left to chance.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tests.control_plane.progress import Progress
from tests.karpenter.binaries import RECORDER, obtain, version
from tests.parity.karpenter import candidates, capacity, consolidation, labels, packing, pools, storage, topology
from tests.parity.karpenter.questions import Question
from tests.parity.plans import differences_of
from tests.parity.recorded import DATA

TOPICS: Final = (labels, packing, pools, storage, topology, capacity, candidates, consolidation)
FILE: Final = DATA / f"karpenter-scenarios-{version()}.jsonl.gz"
RUNS: Final = 6
"""How often Karpenter is asked each question."""
CHANCE_RUNS: Final = 1000
"""How often it is asked those to which it gave different answers: some orders of a map are rare."""

Row = dict[str, Any]


def questions() -> list[Question]:
    """The questions of all topics."""
    return [question for topic in TOPICS for question in topic.questions()]


def question_rows(asked_questions: Iterable[Question]) -> Iterator[Row]:
    """The lines of a file of questions; each catalogue stands before the first that is about it."""
    names: dict[str, str] = {}
    for question in asked_questions:
        text = json.dumps(question.types, sort_keys=True)
        if text not in names:
            names[text] = f"catalogue-{len(names) + 1}"
            yield {"catalogue": names[text], "instanceTypes": list(question.types)}
        yield question.row(names[text])


def answers(rows: Sequence[Row], runs: int = RUNS, chance_runs: int = CHANCE_RUNS) -> dict[str, list[Any]]:
    """By question, the different answers that Karpenter gave.

    Raises: BuildError, ValueError: Karpenter refuses a question.
    """
    binary = obtain(Progress(), RECORDER)
    answer_lists = {name: distinct(items) for name, items in _ask(binary, rows, runs)}
    open_rows = [row for row in rows if "id" not in row or len(answer_lists[row["id"]]) > 1]
    for name, items in _ask(binary, open_rows, chance_runs):
        answer_lists[name] = distinct([*answer_lists[name], *items])
    return answer_lists


def _ask(binary: Path, rows: Sequence[Row], runs: int) -> Iterator[tuple[str, list[Any]]]:
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
        file.flush()
        command = [binary, f"--times={runs}", file.name]
        output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in output.splitlines():
        row = json.loads(line)
        if "error" in row:
            raise ValueError(f"{row['id']}: {row['error']}")
        yield row["id"], row["answers"]


def distinct(items: Iterable[Any]) -> list[Any]:
    """The answers that count as different; the numbers of placeholders do not."""
    kept_items: list[Any] = []
    for item in items:
        if all(differences_of({"id": "", "expect": kept_item}, item) for kept_item in kept_items):
            kept_items.append(item)
    return kept_items


def with_answers(rows: Iterable[Row], answer_lists: dict[str, list[Any]]) -> Iterator[Row]:
    """The lines with what was answered."""
    for row in rows:
        if "id" in row:
            first, *other_answers = answer_lists[row["id"]]
            row = {**row, "expect": first, **({"also": other_answers} if other_answers else {})}
        yield row


def write(rows: Iterable[Row], path: Path = FILE) -> None:
    """Write the lines, alike for alike lines."""
    with path.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.writelines(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows)


def read(path: Path = FILE) -> list[Row]:
    """The lines of a file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
