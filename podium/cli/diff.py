"""`podium diff`: the first decision in which two recordings differ."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from podium.cli.exit_codes import EXIT_NO
from podium.cli.interrupts import exit_at_sigint
from podium.cli.options.configuration import BadConfiguration, plugin_option
from podium.cli.options.html import html_option, write_page
from podium.cli.output import TEXT, output_option, print_value, say
from podium.cli.pages.decisions import decision_text
from podium.cli.replay import errors_shown, print_scores, recorded_configuration, tell_left_out, tell_missing_scores
from podium.lib import log

if TYPE_CHECKING:
    from podium.recording.comparison import Difference, RecordedDecision
    from podium.recording.segments import Segments

    Scores = Mapping[str, Mapping[str, int]]


@click.command()
@click.argument("first", type=click.Path(path_type=Path), metavar="DIR")
@click.argument("second", type=click.Path(path_type=Path), metavar="OTHER")
@plugin_option
@html_option("the first decision that differs, with the scores of both")
@output_option()
def command(first: Path, second: Path, plugins: tuple[str, ...], html: Path | None, output: str) -> None:
    """Compare the decisions of two recordings, and show the first that differs.

    It is shown with the event before it and the scores of both, which are found by replaying each recording up to it.
    Exits with 3 if the recordings differ.
    """
    click.get_current_context().with_resource(exit_at_sigint())
    click.get_current_context().with_resource(log.hidden())
    from podium.recording.comparison import first_difference
    from podium.recording.replay import entries_of, is_watched
    from podium.recording.segments import RecordingError, open_segments

    with errors_shown(first):
        recordings = open_segments(first), open_segments(second)
        for segments in recordings:
            if is_watched(segments):
                raise RecordingError(
                    f"{segments.directory} holds no decisions of podium's: `podium record` has made it"
                )
        difference = first_difference(*map(entries_of, recordings))
        scores = tuple(_scores(segments, difference, plugins) for segments in recordings)
    for segments in recordings:
        if segments.damage:
            say(f"Not all of it could be read: {segments.damage}.", err=True)
        tell_left_out(segments.directory, segments.left_out)
    if html is not None:
        from podium.cli.pages.diff import page_of

        damages = "; ".join(segments.damage for segments in recordings if segments.damage)
        write_page(html, page_of((str(first), str(second)), difference, scores, damages))
    sides = () if difference is None else difference.decisions
    if output != TEXT:
        value = [
            _as_value(directory, side, table)
            for directory, side, table in zip((first, second), sides, scores, strict=False)
        ]
        print_value({"same": difference is None, "attempt": difference and difference.attempt, "sides": value}, output)
    elif difference is None:
        say("The decisions are the same.")
    else:
        say(f"The first difference is at attempt {difference.attempt}.")
        for directory, side, table in zip((first, second), sides, scores, strict=True):
            say(f"  {directory}: {'the recording has ended' if side is None else decision_text(side.decision)}")
            if side is not None:
                say(f"    after this: {side.event}")
            print_scores(str(directory), table)
    if difference is not None:
        raise SystemExit(EXIT_NO)


def _scores(segments: Segments, difference: Difference | None, plugins: tuple[str, ...]) -> Scores:
    """Replay the attempt that differs for its scores; return none if this podium cannot replay the recording."""
    from podium.recording.replay import replay
    from podium.recording.segments import RecordingError

    if difference is None:
        return {}
    try:
        good = recorded_configuration(segments.description, plugins)
        return replay(segments.directory, good.config, good.plugins, scores_attempt=difference.attempt).scores
    except (RecordingError, BadConfiguration) as error:
        tell_missing_scores(segments.directory, error)
        return {}


def _as_value(directory: Path, side: RecordedDecision | None, scores: Scores) -> dict[str, Any]:
    if side is None:
        return {"recording": str(directory), "decision": None}
    return {
        "recording": str(directory),
        "decision": side.decision._asdict(),
        "event": side.event,
        "scores": scores,
    }
