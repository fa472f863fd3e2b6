"""`podium diff`: the first decision in which two recordings differ."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from podium.cli.interrupts import exit_at_sigint
from podium.cli.options.configuration import BadConfiguration, plugin_option
from podium.cli.options.html import html_option, write_page
from podium.cli.output import TEXT, output_option, print_value, say
from podium.cli.pages.decisions import told
from podium.cli.replay import errors_shown, made_with, print_scores, tell_left_out, tell_missing_scores
from podium.lib import log

if TYPE_CHECKING:
    from podium.recording.comparison import Difference, RecordedDecision
    from podium.recording.segments import Segments

    Scores = Mapping[str, Mapping[str, int]]


@click.command()
@click.argument("one", type=click.Path(path_type=Path), metavar="DIR")
@click.argument("other", type=click.Path(path_type=Path), metavar="OTHER")
@plugin_option
@html_option("the first decision that differs, with the scores of both")
@output_option()
def command(one: Path, other: Path, plugins: tuple[str, ...], html: Path | None, output: str) -> None:
    """Compare the decisions of two recordings, and show the first that differs.

    It is shown with the event before it and the scores of both, which are found by replaying each recording up to it.
    Exits with 1 if the recordings differ.
    """
    click.get_current_context().with_resource(exit_at_sigint())
    click.get_current_context().with_resource(log.hidden())
    from podium.recording.comparison import first_difference
    from podium.recording.replay import entries_of, is_watched
    from podium.recording.segments import RecordingError, open_segments

    with errors_shown(one):
        both = open_segments(one), open_segments(other)
        for each in both:
            if is_watched(each):
                raise RecordingError(f"{each.directory} holds no decisions of podium's: `podium record` has made it")
        found = first_difference(*(entries_of(each) for each in both))
        scores = tuple(_scores(each, found, plugins) for each in both)
    for each in both:
        if each.damage:
            say(f"Not all of it could be read: {each.damage}.", err=True)
        tell_left_out(each.directory, each.left_out)
    if html is not None:
        from podium.cli.pages.diff import page_of

        damages = "; ".join(each.damage for each in both if each.damage)
        write_page(html, page_of((str(one), str(other)), found, scores, damages))
    sides = () if found is None else found.decisions
    if output != TEXT:
        value = [
            _as_value(directory, side, table)
            for directory, side, table in zip((one, other), sides, scores, strict=False)
        ]
        print_value({"same": found is None, "attempt": found and found.attempt, "sides": value}, output)
    elif found is None:
        say("The decisions are the same.")
    else:
        say(f"The first difference is at attempt {found.attempt}.")
        for directory, side, table in zip((one, other), sides, scores, strict=True):
            say(f"  {directory}: {'the recording has ended' if side is None else told(side.decision)}")
            if side is not None:
                say(f"    after this: {side.event}")
            print_scores(str(directory), table)
    if found is not None:
        click.get_current_context().exit(1)


def _scores(segments: Segments, found: Difference | None, plugins: tuple[str, ...]) -> Scores:
    """The scores of the attempt that differs; none if the recording cannot be replayed by this podium."""
    from podium.recording.replay import replay
    from podium.recording.segments import RecordingError

    if found is None:
        return {}
    try:
        good = made_with(segments.description, plugins)
        return replay(segments.directory, good.config, good.plugins, scores_attempt=found.attempt).scores
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
