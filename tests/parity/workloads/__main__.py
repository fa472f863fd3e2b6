"""`python -m tests.parity.workloads --seed N`: random clusters and steps, carried out for real and by podium.

Each question is carried out twice on etcd, kube-apiserver, kube-controller-manager and kube-scheduler, and kept if the
same came of it both times. podium decides by the rules of their minor. Exits with 1 if podium's answer to one differs.
What differs is kept in a file, with which `--again FILE` asks podium again.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import click

from tests.control_plane import builder
from tests.control_plane.progress import Progress
from tests.parity.workloads.asking import Answered, Tally, answer, ask, numbers_from, read_questions

_LINES_SHOWN = 4


def _reporting(keep: Path, record: Path | None) -> Callable[[Answered], None]:
    """Shows how podium fares, and keeps what differs; records everything where a file is given for it."""

    def report(result: Answered) -> None:
        name = result.question["id"]
        if record is not None:
            with record.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(result.question) + "\n")
        click.echo(f"{name:<40}{'differs' if result.differences else 'alike'}")
        if result.differences:
            keep.mkdir(parents=True, exist_ok=True)
            path = keep / f"{name}.jsonl"
            path.write_text(json.dumps(result.question) + "\n", encoding="utf-8")
            for line in [str(path), *result.differences[:_LINES_SHOWN]]:
                click.echo(f"    {line}")

    return report


@click.command(help=__doc__)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--count", type=int, default=200, show_default=True, help="How many questions are to be kept.")
@click.option("--number", "numbers", type=int, multiple=True, help="Ask only these questions of the seed.")
@click.option("--first", type=int, default=0, show_default=True, help="The number of the first question.")
@click.option("--planes", type=int, default=2, show_default=True, help="How many control planes run side by side.")
@click.option(
    "--again",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    multiple=True,
    help="Ask podium the questions of a file, without a control plane.",
)
@click.option(
    "--record", type=click.Path(path_type=Path, dir_okay=False), help="A file to append all questions and answers to."
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(tempfile.gettempdir()) / "podium-workloads",
    show_default=True,
    help="Where to keep what is answered differently.",
)
def main(
    seed: int,
    count: int,
    numbers: tuple[int, ...],
    first: int,
    planes: int,
    again: tuple[Path, ...],
    record: Path | None,
    keep: Path,
) -> None:
    report = _reporting(keep, record)
    if again:
        tally = Tally([answer(question) for path in again for question in read_questions(path)])
        for result in tally.results:
            report(result)
    else:
        try:
            binaries = builder.obtain(Progress())
        except builder.BuildError as problem:
            raise click.ClickException(str(problem)) from problem
        # However it is told to stop, it stops the control planes first.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
        plan_numbers = iter(numbers) if numbers else numbers_from(first)
        tally = asyncio.run(ask(binaries, seed, plan_numbers, count, planes, report))
    click.echo("\n".join(tally.lines()))
    sys.exit(int(bool(tally.wrong)))


if __name__ == "__main__":
    main()
