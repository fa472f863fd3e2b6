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
    """What podium says wrongly; nothing if all is right."""
    base, other = directory / "base.yaml", directory / "other.yaml"
    source = directory / "own.py"
    source.write_text(plant.source)
    references = [f"{source}:{name}" for name in plant.plugins]
    base.write_text(json.dumps(_configuration({}, {})))
    other.write_text(json.dumps(_configuration(plant.profile, plant.whole)))
    record(directory / "one", base, (), plant.objects, plant.steps)
    record(
        directory / "other",
        other,
        references,
        plant.objects if plant.other_objects is None else plant.other_objects,
        plant.steps if plant.other_steps is None else plant.other_steps,
    )
    ours, theirs = _decisions(directory / "one"), _decisions(directory / "other")
    place = next((at for at, both in enumerate(zip(ours, theirs, strict=False)) if _differ(*both)), None)
    place = min(len(ours), len(theirs)) if place is None else place
    one, two = (side[place].side if place < len(side) else None for side in (ours, theirs))
    wrong = [] if (one, two) == (plant.one, plant.other) else [f"planted {plant.one}, {plant.other}; are {one}, {two}"]
    wrong += _wrong_of_diff(directory, place, one, two)
    if plant.is_of_configuration:
        wrong += _wrong_of_replay(directory, other, references, place, one, two)
    return [f"{plant.name}: {each}" for each in wrong]


def _configuration(profile: Any, whole: Any) -> Json:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        **whole,
        "profiles": [{"schedulerName": "podium", **profile}],
    }


def _decisions(directory: Path) -> list[_Found]:
    found, event = [], "the start"
    for entry in entries_of(open_segments(directory)):
        if entry[0] in (PUT, REMOVE):
            kind = _KINDS.get(entry[1].rpartition("/")[2], entry[1])
            key = entry[2] if entry[0] == REMOVE else item_of(entry).key
            event = f"{kind} {key} was " + ("deleted" if entry[0] == REMOVE else "added or has changed")
        elif entry[0] == DECIDED:
            _, _, pod, *rest = entry
            found.append(_Found((pod, *rest), Side(pod, event)))
    return found


def _differ(one: _Found, other: _Found) -> bool:
    return one.decision != other.decision


def _wrong_of_diff(directory: Path, place: int, one: Side | None, other: Side | None) -> list[str]:
    done = CliRunner().invoke(main, ["diff", str(directory / "one"), str(directory / "other"), "-o", "json"])
    if done.exit_code != 1:
        return [f"diff ends with {done.exit_code}: {done.output}"]
    said = json.loads(done.stdout)
    named = [each["decision"] and Side(each["decision"]["pod"], each["event"]) for each in said["sides"]]
    is_right = (said["attempt"], *named) == (place + 1, one, other)
    return [] if is_right else [f"diff says attempt {said['attempt']}: {named}; right are {place + 1}: {one}, {other}"]


def _wrong_of_replay(
    directory: Path, config: Path, references: list[str], place: int, one: Side | None, other: Side | None
) -> list[str]:
    more = [part for each in references for part in ("--plugin", each)]
    arguments = ["replay", str(directory / "one"), "--config", str(config), *more, "--expect", "-o", "json"]
    done = CliRunner().invoke(main, arguments)
    if done.exit_code != 1:
        return [f"replay ends with {done.exit_code}: {done.output}"]
    differing, summary = (json.loads(line) for line in done.stdout.splitlines())
    recorded, replayed = differing["recorded"], differing["replayed"]
    said = (summary["attempts"], replayed and replayed["pod"], differing["event"])
    right = (place + 1, other and other.pod, one and one.event)
    wrong = [] if said == right else [f"replay says {said}, with {differing['detail']}; right is {right}"]
    if (recorded and recorded["pod"]) != (one and one.pod):
        wrong.append(f"replay shows {recorded} as recorded, in place of {one}")
    return wrong
