"""`podium replay`: decide again what a recorded scheduler decided."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from podium.cli.interrupts import exit_at_sigint
from podium.cli.options.configuration import Usable, plugin_option, usable
from podium.cli.options.logs import no_log
from podium.cli.output import TEXT, output_option, print_value

if TYPE_CHECKING:
    from podium.recording.player import Differing
    from podium.recording.replay import Replayed
    from podium.recording.tape import Decided

_NODES_SHOWN = 10


@click.command()
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="Another KubeSchedulerConfiguration. The replay ends at the first decision that differs.",
)
@plugin_option
@click.option("--until", type=click.IntRange(min=1), metavar="ATTEMPTS", help="Replay only so many attempts.")
@click.option(
    "--trace", type=click.Path(path_type=Path), metavar="FILE", help="Write a trace for Perfetto into this file."
)
@click.option("--expect", is_flag=True, help="Exit with 1 if a decision differs from the recorded one.")
@output_option()
def command(
    directory: Path,
    config: Path | None,
    plugins: tuple[str, ...],
    until: int | None,
    trace: Path | None,
    expect: bool,
    output: str,
) -> None:
    """Decide again what a scheduler decided that ran with `podium run --record DIR`.

    Queue, cache, scheduling loop and plugins run as they did, in the recorded time and order, with no API server. The
    output says whether every decision is the recorded one, and names the first that is not.
    """
    click.get_current_context().with_resource(exit_at_sigint())
    click.get_current_context().with_resource(no_log())
    from podium.recording.replay import replay
    from podium.recording.segments import RecordingError, open_segments

    try:
        if trace is not None:
            _write_trace(directory, trace)
        described = open_segments(directory).description
        good = made_with(described, plugins) if config is None else usable(config, plugins, to_run=False)
        replayed = replay(directory, good.config, good.plugins, attempts_max=until, is_other=config is not None)
        differing = replayed.outcome.differing
        if differing is not None and differing.recorded is not None:
            differing.recorded_scores = _recorded_scores(directory, described, plugins, replayed)
    except RecordingError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename or directory}: {error.strerror}") from None
    if output == TEXT:
        _print(replayed)
    else:
        if differing is not None:
            print_value(_as_value(differing), output)
        print_value(replayed.summary(), output)
    if replayed.damage and until is None:
        readable = f"the {replayed.outcome.attempts} attempts before it were replayed"
        if not replayed.is_cut:
            raise click.ClickException(f"{replayed.damage}; {readable}")
        click.echo(f"The recording was cut off: {replayed.damage}; {readable}.", err=True)
    if expect and differing is not None:
        click.get_current_context().exit(1)


def _write_trace(directory: Path, file: Path) -> None:
    """Write the spans of a recording as JSON, one on each line."""
    from podium.cli.output import as_json
    from podium.recording.replay import entries_of
    from podium.recording.segments import open_segments
    from podium.recording.trace import trace_events

    with file.open("wb") as written:
        separator = b'{"traceEvents":[\n'
        for event in trace_events(entries_of(open_segments(directory))):
            written.write(separator + as_json(event))
            separator = b",\n"
        written.write(b"\n]}\n")


def _recorded_scores(
    directory: Path, described: Mapping[str, Any], plugins: tuple[str, ...], replayed: Replayed
) -> Mapping[str, Mapping[str, int]]:
    """The scores of the attempt that differs, as they are with the recorded configuration."""
    from podium.recording.replay import replay

    good = made_with(described, plugins)
    return replay(directory, good.config, good.plugins, keep_scores=replayed.outcome.attempts).kept_scores


def made_with(described: Mapping[str, Any], plugins: tuple[str, ...]) -> Usable:
    """The configuration and plugins that a recording was made with.

    Args:
        plugins: custom plugins in place of the recorded references.

    Raises:
        BadConfiguration: a plugin cannot be loaded.
        RecordingError: the description is not what podium writes.
    """
    import tempfile

    from podium.cli.output import as_json
    from podium.recording.segments import RecordingError

    try:
        document, gates = as_json(described["config"]), tuple(described["feature_gates"])
        references = plugins or tuple(described["plugins"])
    except (KeyError, TypeError) as error:
        raise RecordingError(f"the recording does not say what it was made with: {error!r}") from None
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(document)
        file.flush()
        return usable(Path(file.name), references, gates, to_run=False)


def _print(replayed: Replayed) -> None:
    outcome, differing = replayed.outcome, replayed.outcome.differing
    speed = replayed.virtual_s / replayed.wall_s if replayed.wall_s else 0.0
    click.echo(
        f"Replayed {outcome.attempts} attempts of {replayed.virtual_s:.0f} s in {replayed.wall_s:.1f} s "
        f"({speed:.0f} times as fast)."
    )
    click.echo(f"Digest {outcome.digest.hexdigest()}")
    if differing is None:
        click.echo("Every decision is the recorded one.")
        return
    click.echo(f"The first difference is at attempt {outcome.attempts}, after this: {differing.event}.")
    if differing.recorded is None or differing.replayed is None:
        click.echo(differing.detail)
        return
    click.echo(f"  recorded: {told(differing.recorded)}")
    click.echo(f"  replayed: {told(differing.replayed)}")
    for name, table in (("recorded", differing.recorded_scores), ("replayed", differing.replayed_scores)):
        print_scores(name, table)


def told(decision: Decided) -> str:
    """The decision in a few words."""
    if decision.node:
        return f"pod {decision.pod} to node {decision.node}, of {decision.feasible} feasible nodes"
    room = f"; room is to be made on {decision.nominated}" if decision.nominated else ""
    return f"pod {decision.pod} to no node{room}"


def print_scores(name: str, table: Mapping[str, Mapping[str, int]]) -> None:
    """Print the best nodes with their scores by plugin."""
    if not table:
        return
    click.echo(f"Scores, {name}:")
    best = sorted(table, key=lambda node: (-sum(table[node].values()), node))
    for node in best[:_NODES_SHOWN]:
        parts = ", ".join(f"{plugin} {score}" for plugin, score in table[node].items() if score)
        click.echo(f"  {node}: {sum(table[node].values())} ({parts})")


def _as_value(differing: Differing) -> dict[str, Any]:
    return {
        "event": differing.event,
        "detail": differing.detail,
        "recorded": None if differing.recorded is None else differing.recorded._asdict(),
        "replayed": None if differing.replayed is None else differing.replayed._asdict(),
        "recorded_scores": differing.recorded_scores,
        "replayed_scores": differing.replayed_scores,
    }
