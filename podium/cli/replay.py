"""`podium replay`: repeats the decisions of a recorded scheduler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from podium.cli.exit_codes import EXIT_NO
from podium.cli.interrupts import exit_at_sigint
from podium.cli.options.configuration import BadConfiguration, Change, Usable, plugin_option, usable
from podium.cli.options.html import html_option, write_page
from podium.cli.options.numbers import FiniteRange
from podium.cli.options.releases import as_the_newest
from podium.cli.output import TEXT, output_option, print_value, say
from podium.cli.pages.decisions import decision_text
from podium.config import parse_duration
from podium.lib import log
from podium.objects.times import parse_time
from podium.recording.replay_window import ReplayWindow

if TYPE_CHECKING:
    from podium.config import KubeSchedulerConfiguration, Loaded
    from podium.recording.divergence import Divergence
    from podium.recording.replay import ReplayResult
    from podium.recording.segments import LeftOutList
    from podium.recording.timeline import Timeline
    from podium.recording.watched import WatchedReplay

_NODES_SHOWN = 10


def _parse_window(_: click.Context, parameter: click.Parameter, text: str | None) -> ReplayWindow:
    """Parse `--until`."""
    if text is None:
        return ReplayWindow()
    # A plain number is a number of attempts; a duration always has a unit.
    if text.isascii() and text.isdigit() and int(text):
        return ReplayWindow(attempts=int(text))
    with suppress(ValueError):
        if (seconds := parse_duration(text)) > 0:
            return ReplayWindow(seconds=seconds)
    with suppress(ValueError):
        return ReplayWindow(wall_s=parse_time(text))
    raise click.BadParameter(
        f"{text!r} is not a number of attempts, a duration (10m) or a time (2026-05-04T03:00:00Z)",
        param=parameter,
    )


@click.command()
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="Another KubeSchedulerConfiguration. The replay ends at the first decision that differs.",
)
@plugin_option
@as_the_newest
@click.option(
    "--until",
    callback=_parse_window,
    metavar="ATTEMPTS|DURATION|TIME",
    help="Stop after a number of attempts (500), after a duration (10m), or at a time (2026-05-04T03:00:00Z).",
)
@click.option(
    "--speed",
    type=FiniteRange(min=0, min_open=True),
    metavar="N",
    help="Replay N recorded seconds per second. By default as fast as possible.",
)
@click.option(
    "--trace", type=click.Path(path_type=Path), metavar="FILE", help="Write a trace for Perfetto into this file."
)
@html_option("nodes, waiting pods and zones over time, and the first decision that differs")
@click.option("--expect", is_flag=True, help=f"Exit with {EXIT_NO} if a decision differs from the recorded one.")
@click.option(
    "--counterfactual",
    is_flag=True,
    help="Go on after the first difference, with a simulated API server, and print the result.",
)
@output_option()
def command(
    directory: Path,
    config: Path | None,
    plugins: tuple[str, ...],
    until: ReplayWindow,
    speed: float | None,
    trace: Path | None,
    html: Path | None,
    expect: bool,
    counterfactual: bool,
    output: str,
) -> None:
    """Repeat the decisions that `podium run --record DIR` has recorded.

    For a recording made by `podium record`, compare each binding with what podium would have chosen instead.

    Queue, cache, scheduling loop and plugins run as they did, in the recorded time and order, with no API server. The
    output says whether every decision is the recorded one, and names the first that is not.
    """
    click.get_current_context().with_resource(exit_at_sigint())
    # What the replayed scheduler logged was logged when it was recorded.
    click.get_current_context().with_resource(log.hidden())
    if counterfactual:
        is_partial = until != ReplayWindow() or speed is not None or expect or trace is not None
        _print_counterfactual(directory, config, plugins, html, output, is_partial=is_partial)
        return
    from podium.recording.replay import is_watched, replay
    from podium.recording.segments import open_segments

    with errors_shown(directory):
        segments = open_segments(directory)
        description, has_watches = segments.description, is_watched(segments)
        good = _configuration(description, config, plugins, change=_apply_extenders if has_watches else None)
        # Before the replay, which may end with an error: the trace is of the recording alone.
        if trace is not None:
            _write_trace(directory, trace)
        if has_watches:
            comparison = _compare_bindings(directory, good, until, speed, html)
            tell_left_out(directory, comparison.left_out)
            _print_bindings(comparison, output, is_whole=not until.is_set)
            if expect and comparison.report.agreed_count < comparison.report.compared_count:
                raise SystemExit(EXIT_NO)
            return
        has_other_config = config is not None
        result = replay(
            directory, good.config, good.plugins, window=until, speed=speed, has_other_config=has_other_config
        )
        differing = result.outcome.divergence
        # Scores are not recorded, so that recordings stay small; one attempt is repeated for them.
        if differing is not None and differing.recorded is not None:
            differing.recorded_scores = _recorded_scores(directory, description, plugins, result)
        if html is not None:
            from podium.cli.pages.replay import page_of

            timeline = _timeline(directory, result.virtual_s if until.is_set else None)
            write_page(html, page_of(directory.name, result, timeline))
    if output == TEXT:
        _print(result)
    else:
        if differing is not None:
            print_value(_as_value(differing), output)
        print_value(result.summary(), output)
    if result.made_by:
        say(f"{result.made_by}.", err=True)
    tell_left_out(directory, result.left_out, differs=differing is not None and not has_other_config)
    # A limited replay does not get as far as the damage.
    if not until.is_set:
        _tell_damage(result, f"the {result.outcome.attempts} attempts before it were replayed")
    if expect and differing is not None:
        raise SystemExit(EXIT_NO)


def _print_counterfactual(
    directory: Path,
    config: Path | None,
    plugins: tuple[str, ...],
    html: Path | None,
    output: str,
    *,
    is_partial: bool,
) -> None:
    """Print the results of the configuration at the end of the recording."""
    # Beyond the first difference there are no recorded decisions to stop at or compare with.
    if is_partial:
        raise click.UsageError("--counterfactual cannot be combined with --until, --speed, --expect or --trace.")
    from podium.recording.counterfactual import replay_counterfactually
    from podium.recording.segments import open_segments
    from podium.recording.timeline import UtilizationRecorder

    with errors_shown(directory):
        good = _configuration(open_segments(directory).description, config, plugins)
        recorder = UtilizationRecorder([profile.scheduler_name for profile in good.config.profiles])
        listener = recorder if html is not None else None
        result = replay_counterfactually(directory, good.config, good.plugins, utilization=listener)
    if html is not None:
        from podium.cli.pages.replay import counterfactual_page

        write_page(html, counterfactual_page(directory.name, result, recorder.timeline(result.started_s)))
    if output != TEXT:
        print_value(result.outcomes.as_value(), output)
    else:
        for name, value in result.outcomes.as_value().items():
            say(f"{name}: {'-' if value is None else value}")
    if result.damage:
        say(f"The recording was not read to its end: {result.damage}.", err=True)
    tell_left_out(directory, result.left_out)


def _compare_bindings(
    directory: Path, good: Usable, window: ReplayWindow, speed: float | None, html: Path | None
) -> WatchedReplay:
    """Compare podium's choices with the bindings of another scheduler, as `podium shadow` does."""
    from podium.recording.watched import compare_bindings

    comparison = compare_bindings(directory, good.config, good.plugins, window=window, speed=speed)
    if html is not None:
        from podium.cli.pages.shadow import page_of

        timeline = _timeline(directory, comparison.virtual_s if window.is_set else None)
        write_page(html, page_of(f"Bindings in {directory.name}", comparison.report, timeline, comparison.damage))
    return comparison


def _print_bindings(comparison: WatchedReplay, output: str, *, is_whole: bool) -> None:
    from podium.cli.shadow_table import print_report

    if output == TEXT:
        print_report(comparison.report)
    else:
        print_value(comparison.report.to_json(), output)
        print_value(comparison.summary(), output)
    if is_whole:
        _tell_damage(comparison, f"the {comparison.report.compared_count} bindings before it were compared")


@contextmanager
def errors_shown(directory: Path) -> Iterator[None]:
    """End the command with an error if a recording cannot be read."""
    from podium.recording.segments import RecordingError

    try:
        yield
    except RecordingError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename or directory}: {error.strerror}") from None


def tell_left_out(directory: Path, left_out: LeftOutList, *, differs: bool = False) -> None:
    """Say which objects a recording lacks, and that they may be why the replay differs, if it does."""
    if left_out.count:
        # To standard error, so that JSON on standard output stays whole.
        say(f"{directory}: {left_out}", err=True)
        if differs:
            say("Decisions about what is left out cannot be made again: the replay may end there", err=True)


def _tell_damage(read: ReplayResult | WatchedReplay, readable: str) -> None:
    """Say why a recording was not read to its end. Raises: click.ClickException unless it was merely cut off."""
    # A recording that was cut off ended with its process; anything else may be a fault of the disk.
    if read.damage and not read.is_cut:
        raise click.ClickException(f"{read.damage}; {readable}")
    if read.damage:
        say(f"The recording was cut off: {read.damage}; {readable}.", err=True)


def _configuration(
    description: Mapping[str, Any], config: Path | None, plugins: tuple[str, ...], *, change: Change | None = None
) -> Usable:
    """Read the configuration for the replay: the given one, with the change applied, or that of the recording."""
    if config is None:
        return recorded_configuration(description, plugins)
    from podium.recording.replay import recorded_release

    release = recorded_release(description)
    return usable(config, plugins, to_run=False, change=change or (lambda file: file.config), release=release)


def _apply_extenders(file: Loaded) -> KubeSchedulerConfiguration:
    from podium.config.effective import apply_extenders

    return apply_extenders(file.config)


def _write_trace(directory: Path, file: Path) -> None:
    """Write the spans of a recording as JSON, one on each line."""
    from podium.cli.output import as_json
    from podium.recording.replay import entries_of
    from podium.recording.segments import open_segments
    from podium.recording.trace import trace_events

    with file.open("wb") as output:
        separator = b'{"traceEvents":[\n'
        for event in trace_events(entries_of(open_segments(directory))):
            output.write(separator + as_json(event))
            separator = b",\n"
        output.write(b"\n]}\n")


def _timeline(directory: Path, seconds: float | None) -> Timeline:
    """Read the cluster's timeline from the recording, or from its first seconds."""
    from podium.recording.replay import entries_of
    from podium.recording.segments import RecordingError, open_segments
    from podium.recording.timeline import read_timeline

    segments = open_segments(directory)
    try:
        names = [profile["schedulerName"] for profile in segments.description["config"]["profiles"]]
    except (KeyError, TypeError) as error:
        raise RecordingError(f"the recording does not say whose pods it is about: {error!r}") from None
    return read_timeline(entries_of(segments), names, seconds=seconds)


def _recorded_scores(
    directory: Path, description: Mapping[str, Any], plugins: tuple[str, ...], result: ReplayResult
) -> Mapping[str, Mapping[str, int]]:
    """Replay the attempt that differs with the recorded configuration for its scores; none without its plugins."""
    from podium.recording.replay import replay
    from podium.recording.segments import RecordingError

    try:
        good = recorded_configuration(description, plugins)
    except (RecordingError, BadConfiguration) as error:
        tell_missing_scores(directory, error)
        return {}
    return replay(directory, good.config, good.plugins, scores_attempt=result.outcome.attempts).scores


def tell_missing_scores(directory: Path, error: Exception) -> None:
    """Say why the scores of a recording's decision are not shown."""
    say(f"{directory}: the scores of the decision are not shown: {error}", err=True)


def recorded_configuration(description: Mapping[str, Any], plugins: tuple[str, ...]) -> Usable:
    """Read the configuration of a recording, with the plugins that the command line names.

    Raises:
        BadConfiguration: a plugin cannot be loaded, or one of the recording's is not among them.
        RecordingError: the description is not podium's, or it names plugins and none are given.
    """
    import tempfile

    from podium.cli.output import as_json
    from podium.recording.replay import (
        advice_on_plugins,
        demand_plugins,
        recorded_gates,
        recorded_references,
        recorded_release,
    )
    from podium.recording.segments import RecordingError

    demand_plugins(description, plugins)
    gates = recorded_gates(description)
    try:
        document = as_json(description["config"])
    except KeyError as error:
        raise RecordingError(f"the recording does not say what it was made with: {error!r}") from None
    # Through a file, since the reader of configurations names the file and line of an error.
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(document)
        file.flush()
        try:
            release = recorded_release(description)
            return usable(Path(file.name), plugins, gates, to_run=False, release=release)
        except BadConfiguration as error:
            lines = [line.replace(file.name, "the recorded configuration") for line in error.lines]
            # The recording's plugins are the likeliest reason, and are not loaded unless they are named.
            if references := recorded_references(description):
                lines.append(advice_on_plugins(references))
            raise BadConfiguration(lines) from None


def _print(result: ReplayResult) -> None:
    outcome, differing = result.outcome, result.outcome.divergence
    speed = result.virtual_s / result.wall_s if result.wall_s else 0.0
    say(
        f"Replayed {outcome.attempts} attempts of {result.virtual_s:.0f} s in {result.wall_s:.1f} s "
        f"({speed:.0f} times as fast)."
    )
    say(f"Digest {outcome.digest.hexdigest()}")
    if differing is None:
        say("Every decision is the recorded one.")
        return
    say(f"The first difference is at attempt {outcome.attempts}, after this: {differing.event}.")
    if differing.recorded is None or differing.replayed is None:
        say(f"The replay cannot go on: {differing.detail}.")
        return
    say(f"  recorded: {decision_text(differing.recorded)}")
    say(f"  replayed: {decision_text(differing.replayed)}")
    for name, table in (("recorded", differing.recorded_scores), ("replayed", differing.replayed_scores)):
        print_scores(name, table)


def print_scores(name: str, table: Mapping[str, Mapping[str, int]]) -> None:
    """Print the best nodes with their scores by plugin."""
    if not table:
        return
    say(f"Scores, {name}:")
    best = sorted(table, key=lambda node: (-sum(table[node].values()), node))
    for node in best[:_NODES_SHOWN]:
        parts = ", ".join(f"{plugin} {score}" for plugin, score in table[node].items() if score)
        say(f"  {node}: {sum(table[node].values())} ({parts})")


def _as_value(differing: Divergence) -> dict[str, Any]:
    return {
        "event": differing.event,
        "detail": differing.detail,
        "recorded": None if differing.recorded is None else differing.recorded._asdict(),
        "replayed": None if differing.replayed is None else differing.replayed._asdict(),
        "recorded_scores": differing.recorded_scores,
        "replayed_scores": differing.replayed_scores,
    }
