"""`podium record`: record what the watches of a cluster show, beside any scheduler."""

from __future__ import annotations

from pathlib import Path

import click

from podium.cli import event_loop
from podium.cli.interrupts import exit_0_at_sigterm
from podium.cli.options.logs import logging_options
from podium.cli.options.other_scheduler import for_schedulers, other_scheduler_options, usable_beside
from podium.cli.options.recordings import record_max_option
from podium.cli.output import say


@click.command()
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
@other_scheduler_options
@record_max_option("Stop at this size, such as 10Gi. By default there is no limit.")
@click.option(
    "--hash-names",
    "hashes_names",
    is_flag=True,
    help="Make names, and the values of labels and annotations, unreadable in the recording.",
)
@logging_options
def command(
    directory: Path,
    kubeconfig: str | None,
    context: str | None,
    schedulers: tuple[str, ...],
    config: Path | None,
    plugins: tuple[str, ...],
    for_s: float | None,
    record_bytes: int | None,
    hashes_names: bool,
) -> None:
    """Record what happens in a cluster into a new or empty directory, until SIGTERM or SIGINT.

    It changes nothing, and never reads Secrets. For each pod that the scheduler bound, `podium replay DIR` then shows
    what podium would have done.
    """
    from podium.recording.hashed_names import NameHasher
    from podium.recording.watched import Options, RecordApp

    with exit_0_at_sigterm():
        good = usable_beside(config, plugins, kubeconfig, context)
    options = Options(
        directory=directory,
        config=for_schedulers(good.config, schedulers, is_default=config is None),
        classes=good.plugins,
        references=plugins,
        kubeconfig=kubeconfig,
        context=context,
        for_s=for_s,
        bytes_max=record_bytes,
        hasher=NameHasher.with_new_key() if hashes_names else None,
    )
    changes = event_loop.run_process(RecordApp(options).run)
    say(f"Recorded {changes} changes in {directory}.")
