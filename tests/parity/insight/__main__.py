"""`python -m tests.parity.insight --seed N`: are fixes true and minimum, and capacities what then binds?

After the recorded scenarios, new ones are crossed by chance from the seed. podium says what would make pods fit that
fit nowhere, and how many copies of a pod fit. kube-scheduler's own packages are asked whether that holds, and every
smaller set of edits is tried. Exits with 1 where it does not hold.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from tests.control_plane import builder
from tests.control_plane.progress import Progress
from tests.parity.cross import recorder
from tests.parity.cross.comparison import recorded_questions
from tests.parity.cross.scenarios import crossed_scenarios
from tests.parity.insight.capacities import capacities, check_capacities
from tests.parity.insight.fixes import check_fixes, infeasible
from tests.parity.recorded import SCENARIOS

SHOWN = 20
WITHOUT_END = 1_000_000


@click.command(help=__doc__)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--fixes", type=int, default=500, show_default=True, help="Pods that fit nowhere.")
@click.option("--capacities", "clusters", type=int, default=300, show_default=True, help="Clusters that are filled.")
@click.option(
    "--sets", type=int, default=4000, show_default=True, help="Do not try all sets of edits if there are more."
)
def main(seed: int, fixes: int, clusters: int, sets: int) -> None:
    try:
        binary = recorder.obtain(Progress())
    except builder.BuildError as problem:
        raise click.ClickException(str(problem)) from problem
    recordings = recorded_questions(SCENARIOS)
    with tempfile.TemporaryDirectory(prefix="podium-insight-") as directory:
        of_recordings = check_fixes(infeasible(recordings, len(recordings)), binary, Path(directory), 0)
        click.echo(
            f"recorded: {of_recordings.question_count} pods that fit nowhere, "
            f"{of_recordings.fixed_count} with fixes; {len(of_recordings.wrong)} wrong"
        )
        questions = infeasible(crossed_scenarios(recordings, seed, WITHOUT_END), fixes)
        of_fixes = check_fixes(questions, binary, Path(directory), sets)
        click.echo(
            f"fixes: {of_fixes.question_count} pods that fit nowhere, {of_fixes.fixed_count} with fixes; "
            f"{of_fixes.sets} sets of edits asked of kube-scheduler's code; "
            f"all smaller sets tried for {of_fixes.searched}; {len(of_fixes.wrong)} wrong"
        )
        crossed = capacities(crossed_scenarios(recordings, seed, WITHOUT_END), clusters)
        of_capacities = check_capacities(crossed, binary, Path(directory))
        click.echo(
            f"capacities: {of_capacities.question_count} clusters, {of_capacities.copies} copies; "
            f"{len(of_capacities.wrong)} wrong"
        )
    wrong = [*of_recordings.wrong, *of_fixes.wrong, *of_capacities.wrong]
    for line in wrong[:SHOWN]:
        click.echo(f"  {line}")
    sys.exit(int(bool(wrong)))


if __name__ == "__main__":
    main()
