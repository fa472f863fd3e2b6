"""`python -m tests.estimator_chaos --questions 10000`: podium's client of estimator servers while these are in trouble.

Some members have podium's server, some Karmada's own; others lie. Servers are killed, hang, restart, get certificates
of their own and of another authority, and leave, come back, move and are renamed. Exits with 1 if an answer is neither
right nor -1, or later than its deadline, if a member does not answer again, or if connections or memory leak.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from podium.estimator.server.tls13 import keep_quiet
from tests.control_plane.builder import BuildError
from tests.control_plane.progress import Progress
from tests.karmada.binaries import SERVER, obtain

if TYPE_CHECKING:
    from tests.estimator_chaos.trial import Report


@click.command(help=__doc__)
@click.option("--questions", type=click.IntRange(3), default=10_000, show_default=True)
@click.option("--members", type=click.IntRange(0), default=6, show_default=True, help="With podium's server.")
@click.option("--karmada-members", type=click.IntRange(0), default=2, show_default=True, help="With Karmada's server.")
@click.option("--askers", type=click.IntRange(1), default=20, show_default=True, help="Questions at once.")
@click.option("--timeout", "timeout_s", type=float, default=1.0, show_default=True, help="For a question, in seconds.")
@click.option("--seed", type=int, default=1, show_default=True)
def main(questions: int, members: int, karmada_members: int, askers: int, timeout_s: float, seed: int) -> None:
    # gRPC's C core reads its settings from the environment when it is imported.
    keep_quiet()
    from tests.estimator_chaos.fleet import Plan, try_fleet

    try:
        karmada = obtain(SERVER, Progress()) if karmada_members else None
    except BuildError as problem:
        raise click.ClickException(str(problem)) from problem
    plan = Plan(questions, members, karmada_members, askers, timeout_s, seed, karmada)
    with tempfile.TemporaryDirectory() as directory:
        report = anyio.run(try_fleet, plan, Path(directory))
    _print(report)
    sys.exit(bool(report.faults))


def _print(report: Report) -> None:
    click.echo(
        f"{report.question_count:,} questions, the latest answer {report.late_s * 1e3:+.0f} ms from its deadline"
    )
    for name, count in sorted(report.troubles.items()):
        click.echo(f"  {count:6,} × {name}")
    for name, count in sorted(report.answer_counts.items()):
        click.echo(f"  {count:6,} answers of {name}")
    for state in report.samples:
        click.echo(
            f"  after {state.pods:,} questions: {state.rss_mib:.1f} MiB, {state.tasks} tasks, {state.threads} threads, "
            f"{state.descriptors} descriptors"
        )
    for fault in report.faults or ["every answer was right or -1, and nothing leaks"]:
        click.echo(fault)


if __name__ == "__main__":
    main()
