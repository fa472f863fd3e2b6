"""`python -m tests.parity.policies --tree PATH --placement PATH`: drawn questions to scheduler-plugins' own code.

Exits with 1 where podium answers anything else. A question at which upstream panics is no question, and neither is
one to which its score is no number.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import click
import orjson

from tests.control_plane.builder import BuildError
from tests.control_plane.progress import Progress
from tests.parity.cross import recorder
from tests.parity.cross.comparison import Keeping, order_reasons
from tests.parity.cross.drawing import Json
from tests.parity.policies import upstream
from tests.parity.policies.comparison import comparable, evaluator
from tests.parity.policies.drawing import drawn_questions
from tests.parity.recorded import differences

AGAIN = 5
LINES_SHOWN = 6
NO_NUMBER = 'plugin "NodeResourceTopologyMatch" returns an invalid score -'
"""Upstream's score where it divides zero by zero: the balance of a single resource."""


def differing(question: Json, line: bytes, upstream_answer: Json) -> list[str]:
    answers = comparable(upstream_answer), comparable(evaluator(time.time()).answer_line(line, question["id"]))
    for answer in answers:
        order_reasons(answer)
    level_peaks(question, *answers)
    return list(differences(*answers))


def level_peaks(question: Json, *answers: Json) -> None:
    """Take scores of Peaks for equal that are one point apart.

    Go's exponential function is off by one bit in one of seven numbers, in another way where the processor fuses
    additions with multiplications.
    """
    score = question["config"]["profiles"][0]["plugins"].get("score", {}).get("enabled", ())
    weight = next((plugin.get("weight", 1) for plugin in score if plugin["name"] == "Peaks"), 0)
    upstream_scores, scores = (answer.get("scores", {}) for answer in answers)
    for node in upstream_scores.keys() & scores.keys() if weight else ():
        point, upstream_point = scores[node].get("Peaks", 0), upstream_scores[node].get("Peaks", 0)
        if abs(point - upstream_point) <= weight:
            scores[node]["Peaks"] = upstream_scores[node]["Peaks"] = upstream_point


def is_chance(binary: Path, question: Json, line: bytes, file: Path) -> bool:
    """Return True if upstream, asked again, also answers as podium does, or panics, which is noticed late.

    Upstream goes through maps in no order.
    """
    file.write_bytes(line * AGAIN)
    answers = list(recorder.answers(binary, file))
    return any("failed" in answer or not differing(question, line, answer) for answer in answers)


def compare(questions: Iterable[Json], binary: Path, keeping: Keeping, directory: Path) -> int:
    """Ask upstream and podium, and return how many answers differ."""
    lines = [orjson.dumps(question) + b"\n" for question in questions]
    file = directory / "questions"
    file.write_bytes(b"".join(lines))
    counts: Counter[str] = Counter()
    for line, upstream_answer in zip(lines, recorder.answers(binary, file), strict=True):
        question = orjson.loads(line)
        if NO_NUMBER in upstream_answer.get("error", ""):
            counts["scored as no number by upstream"] += 1
            continue
        if "failed" in upstream_answer:
            counts["not answered by upstream"] += 1
            keeping.keep(f"{question['id']}.failed", line + upstream_answer["failed"].encode())
            continue
        answer_differences = differing(question, line, upstream_answer)
        if not answer_differences or is_chance(binary, question, line, directory / "again"):
            counts["alike"] += 1
            continue
        counts["different"] += 1
        path = keeping.keep(f"{question['id']}.jsonl", orjson.dumps({**question, "expect": upstream_answer}) + b"\n")
        click.echo("\n    ".join((f"  {path}", *answer_differences[:LINES_SHOWN])))
    click.echo(", ".join(f"{count} {name}" for name, count in counts.items()))
    return counts["different"]


@click.command(help=__doc__)
@click.option(
    "--tree",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A clone of kubernetes-sigs/scheduler-plugins.",
)
@click.option(
    "--placement", type=click.Path(path_type=Path, exists=True, file_okay=False), help="A clone of its numaplacement."
)
@click.option("--answerer", type=click.Path(path_type=Path, exists=True), help="What was built from them before.")
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--count", type=int, default=1000, show_default=True)
@click.option("--keep", type=click.Path(path_type=Path), default=Path(tempfile.gettempdir()) / "podium-policies")
def main(tree: Path | None, placement: Path | None, answerer: Path | None, seed: int, count: int, keep: Path) -> None:
    if answerer is None:
        if tree is None or placement is None:
            raise click.UsageError("--tree and --placement are needed")
        try:
            answerer = upstream.obtain(tree, placement, Progress())
        except BuildError as problem:
            raise click.ClickException(str(problem)) from problem
    with tempfile.TemporaryDirectory(prefix="podium-policies-") as directory:
        sys.exit(int(compare(drawn_questions(seed, count), answerer, Keeping(keep), Path(directory)) > 0))


if __name__ == "__main__":
    main()
