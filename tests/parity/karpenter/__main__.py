"""`python -m tests.parity.karpenter`: asks Karpenter's code every question, and writes the file of its answers.

With `--again FILE` it asks those of another file of recorded plans instead, and says where its answers differ.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from podium.provisioner.reports.cases import Cases
from tests.parity.karpenter.corpus import RUNS, answers, question_rows, questions, read, with_answers, write
from tests.parity.plans import differences_of


@click.command()
@click.option(
    "--again",
    "questions_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Ask those of a file.",
)
@click.option("--runs", default=RUNS, show_default=True, help="How often each question is asked.")
@click.option("--write/--no-write", "writes", default=True, help="Write the file of answers.")
def main(questions_file: Path | None, runs: int, writes: bool) -> None:
    """Record Karpenter's answers, or check those of a file."""
    if questions_file is not None:
        rows = read(questions_file)
        differing = _differences_between(rows, answers(rows, runs, 1))
    else:
        rows = list(question_rows(questions()))
        rows = list(with_answers(rows, answers(rows, runs)))
        if writes:
            write(rows)
        differing = differences(rows)
    for difference in differing:
        click.echo(difference)
    count = sum("id" in row for row in rows)
    click.echo(
        f"{count} questions, {sum('also' in row for row in rows)} with several answers, {len(differing)} differences"
    )
    sys.exit(bool(differing))


def differences(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Where podium's answers differ from the recorded ones."""
    cases, differing = Cases(), []
    for row in rows:
        answer = cases.answer(row)
        if answer is not None:
            differing.extend(differences_of(row, answer))
    return differing


def _differences_between(rows: list[dict[str, Any]], answer_lists: dict[str, list[Any]]) -> list[str]:
    """Where none of Karpenter's answers is the recorded one."""
    differing = []
    for row in rows:
        if "id" in row:
            candidates = [differences_of(row, answer) for answer in answer_lists[row["id"]]]
            differing.extend(min(candidates, key=len))
    return differing


if __name__ == "__main__":
    main()
