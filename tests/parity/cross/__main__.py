"""`python -m tests.parity.cross --seed N`: new questions, answered by upstream's own code of each minor and by podium.

Recorded scenarios, queues, changes, pods with devices, pod groups and configuration files are crossed by chance from
the seed, and device selectors are drawn. The kube-scheduler binary reads the files, kube-scheduler's own packages
answer the rest.
Exits with 1 where podium says anything else.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from podium.config import NEWEST, RELEASES
from tests.control_plane import builder
from tests.control_plane.progress import Progress
from tests.parity.cross import recorder
from tests.parity.cross.changes import crossed_changes
from tests.parity.cross.comparison import (
    Keeping,
    Outcome,
    compare_answers,
    compare_configurations,
    recorded_files,
    recorded_questions,
)
from tests.parity.cross.configurations import crossed_configurations
from tests.parity.cross.devices import about_one_pod, crossed_devices
from tests.parity.cross.pod_groups import crossed_pod_groups
from tests.parity.cross.scenarios import crossed_scenarios, crossed_sequences
from tests.parity.cross.selectors import crossed_selectors
from tests.parity.recorded import DEVICE_HINTS, DEVICES, HINTS, POD_GROUPS, SCENARIOS, SELECTORS, SEQUENCES
from tests.skew import releases

SHOWN, LINES_SHOWN = 5, 4
_ASKED_OF = (SCENARIOS, SEQUENCES, HINTS, DEVICES, DEVICE_HINTS, SELECTORS, POD_GROUPS)


def outcomes(
    seed: int,
    counts: dict[str, int],
    recorder_binary: Path,
    scheduler_binary: Path,
    keeping: Keeping,
    minor: str = NEWEST.minor,
) -> Iterator[tuple[str, Outcome]]:
    """Yield the outcome for so many questions of each kind, kind by kind."""
    recordings = {name: recorded_questions(name) for name in _ASKED_OF}
    with_devices = about_one_pod(recordings[DEVICES])
    crossings: dict[str, Callable[[int], Iterator[dict[str, object]]]] = {
        "scenarios": lambda count: crossed_scenarios(recordings[SCENARIOS], seed, count),
        "sequences": lambda count: crossed_sequences(recordings[SEQUENCES], seed, count),
        "changes": lambda count: crossed_changes(recordings[HINTS], recordings[SCENARIOS], seed, count),
        "devices": lambda count: crossed_devices(with_devices, seed, count),
        "device changes": lambda count: crossed_changes(recordings[DEVICE_HINTS], with_devices, seed, count),
        "selectors": lambda count: crossed_selectors(recordings[SELECTORS], seed, count),
    }
    if minor == NEWEST.minor:  # the recorder runs the group cycle of that minor only
        crossings["pod groups"] = lambda count: crossed_pod_groups(recordings[POD_GROUPS], seed, count)
    with tempfile.TemporaryDirectory(prefix="podium-parity-") as directory:
        for name, crossed in crossings.items():
            question_file, has_chance = Path(directory) / name, name == "pod groups"
            questions = crossed(counts[name])
            yield (
                name,
                compare_answers(questions, recorder_binary, question_file, keeping, minor, has_chance=has_chance),
            )
    files = crossed_configurations(recorded_files(), seed, counts["configurations"])
    yield "configurations", compare_configurations(files, scheduler_binary, keeping, minor)


def show(name: str, outcome: Outcome) -> None:
    click.echo(f"{name:<15}{outcome.alike:>6} of {outcome.question_count} alike")
    for difference in outcome.differing[:SHOWN]:
        click.echo(f"  {difference.file}")
        for line in difference.lines[:LINES_SHOWN]:
            click.echo(f"    {line}")


@click.command(help=__doc__)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--minor", "minors", multiple=True, type=click.Choice(list(RELEASES)), help="By default all of them.")
@click.option("--scenarios", type=int, default=1000, show_default=True, help="Single attempts.")
@click.option("--sequences", type=int, help="Queues of 20 to 60 pods.  [default: a 20th of the scenarios]")
@click.option("--changes", type=int, help="Changes of a cluster.  [default: half of the scenarios]")
@click.option("--devices", type=int, help="Attempts at pods with devices.  [default: a fifth of the scenarios]")
@click.option(
    "--device-changes", type=int, help="Changes where a pod waits for devices.  [default: a fifth of the scenarios]"
)
@click.option("--selectors", type=int, help="Expressions about a device.  [default: as many as scenarios]")
@click.option("--pod-groups", type=int, help="Queues with pod groups.  [default: a tenth of the scenarios]")
@click.option("--configurations", type=int, help="Configuration files.  [default: a fifth of the scenarios]")
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(tempfile.gettempdir()) / "podium-parity",
    show_default=True,
    help="Where to keep what is answered differently, for `podium evaluate` and `podium config effective`.",
)
@click.option("--build-only", is_flag=True, help="Build what answers the questions, and ask none.")
def main(
    seed: int,
    minors: tuple[str, ...],
    scenarios: int,
    sequences: int | None,
    changes: int | None,
    devices: int | None,
    device_changes: int | None,
    selectors: int | None,
    pod_groups: int | None,
    configurations: int | None,
    keep: Path,
    build_only: bool,
) -> None:
    counts = {
        "scenarios": scenarios,
        "sequences": scenarios // 20 if sequences is None else sequences,
        "changes": scenarios // 2 if changes is None else changes,
        "devices": scenarios // 5 if devices is None else devices,
        "device changes": scenarios // 5 if device_changes is None else device_changes,
        "selectors": scenarios if selectors is None else selectors,
        "pod groups": scenarios // 10 if pod_groups is None else pod_groups,
        "configurations": scenarios // 5 if configurations is None else configurations,
    }
    progress, differing = Progress(), 0
    for minor in minors or RELEASES:
        try:
            binaries = recorder.obtain(progress, minor=minor), releases.kube_scheduler(progress, minor)
        except builder.BuildError as problem:
            raise click.ClickException(str(problem)) from problem
        if build_only:
            click.echo("\n".join(str(binary) for binary in binaries))
            continue
        click.echo(f"== Kubernetes {minor}")
        for name, outcome in outcomes(seed, counts, *binaries, Keeping(keep / minor), minor):
            show(name, outcome)
            differing += len(outcome.differing)
    sys.exit(int(differing > 0))


if __name__ == "__main__":
    main()
