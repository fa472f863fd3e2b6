"""Whether `podium diff` and `podium replay --config` name a planted difference.

What they have to name is known twice: from the plant, and from the two lists of decisions, which are compared here one
by one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from podium.cli.exit_codes import EXIT_NO
from podium.cli.main import main
from podium.recording.entries import DECIDED, PUT, REMOVE, item_of
from podium.recording.replay import entries_of
from podium.recording.segments import open_segments
from tests.planted.lives import Json, record
from tests.planted.plants import Plant, Side

_KINDS = {"nodes": "Node", "pods": "Pod"}


@dataclass(frozen=True, slots=True)
class _Found:
    """A decision of a recording, and what was seen last before it."""

    decision: tuple[Any, ...]
    side: Side


def check(plant: Plant, directory: Path) -> list[str]:
    """Return podium's wrong answers; nothing if all is right."""
    base, second = directory / "base.yaml", directory / "other.yaml"
    source = directory / "own.py"
    source.write_text(plant.source)
    references = [f"{source}:{name}" for name in plant.plugins]
    base.write_text(json.dumps(_configuration({}, {})))
    second.write_text(json.dumps(_configuration(plant.profile, plant.settings)))
    record(directory / "one", base, (), plant.objects, plant.steps)
    record(
        directory / "other",
        second,
        references,
        plant.objects if plant.other_objects is None else plant.other_objects,
        plant.steps if plant.other_steps is None else plant.other_steps,
    )
    ours, theirs = _decisions(directory / "one"), _decisions(directory / "other")
    place = next((at for at, pair in enumerate(zip(ours, theirs, strict=False)) if _differ(*pair)), None)
    place = min(len(ours), len(theirs)) if place is None else place
    first, two = (side[place].side if place < len(side) else None for side in (ours, theirs))
    wrong = (
        []
        if (first, two) == (plant.first, plant.second)
        else [f"planted {plant.first}, {plant.second}; are {first}, {two}"]
    )
    wrong += _wrong_of_diff(directory, place, first, two)
    if plant.is_of_configuration:
        wrong += _wrong_of_replay(directory, second, references, place, first, two)
    return [f"{plant.name}: {line}" for line in wrong]


def _configuration(profile: Any, settings: Any) -> Json:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        **settings,
        "profiles": [{"schedulerName": "podium", **profile}],
    }


def _decisions(directory: Path) -> list[_Found]:
    decisions, event = [], "the start"
    for entry in entries_of(open_segments(directory)):
        if entry[0] in (PUT, REMOVE):
            kind = _KINDS.get(entry[1].rpartition("/")[2], entry[1])
            key = entry[2] if entry[0] == REMOVE else item_of(entry).key
            event = f"{kind} {key} was " + ("deleted" if entry[0] == REMOVE else "added or has changed")
        elif entry[0] == DECIDED:
            _, _, pod, *fields = entry
            decisions.append(_Found((pod, *fields), Side(pod, event)))
    return decisions


def _differ(first: _Found, second: _Found) -> bool:
    return first.decision != second.decision


def _wrong_of_diff(directory: Path, place: int, first: Side | None, second: Side | None) -> list[str]:
    result = CliRunner().invoke(main, ["diff", str(directory / "one"), str(directory / "other"), "-o", "json"])
    if result.exit_code != EXIT_NO:
        return [f"diff ends with {result.exit_code}: {result.output}"]
    answer = json.loads(result.stdout)
    sides = [side["decision"] and Side(side["decision"]["pod"], side["event"]) for side in answer["sides"]]
    is_right = (answer["attempt"], *sides) == (place + 1, first, second)
    return (
        []
        if is_right
        else [f"diff says attempt {answer['attempt']}: {sides}; right are {place + 1}: {first}, {second}"]
    )


def _wrong_of_replay(
    directory: Path, config: Path, references: list[str], place: int, first: Side | None, second: Side | None
) -> list[str]:
    plugin_options = [part for reference in references for part in ("--plugin", reference)]
    arguments = ["replay", str(directory / "one"), "--config", str(config), *plugin_options, "--expect", "-o", "json"]
    result = CliRunner().invoke(main, arguments)
    if result.exit_code != EXIT_NO:
        return [f"replay ends with {result.exit_code}: {result.output}"]
    differing, summary = (json.loads(line) for line in result.stdout.splitlines())
    recorded_row, replayed_row = differing["recorded"], differing["replayed"]
    summary_row = (summary["attempts"], replayed_row and replayed_row["pod"], differing["event"])
    right = (place + 1, second and second.pod, first and first.event)
    wrong = [] if summary_row == right else [f"replay says {summary_row}, with {differing['detail']}; right is {right}"]
    if (recorded_row and recorded_row["pod"]) != (first and first.pod):
        wrong.append(f"replay shows {recorded_row} as recorded, in place of {first}")
    return wrong
