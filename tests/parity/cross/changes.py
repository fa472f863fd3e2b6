"""New changes of a cluster: recorded ones in which another pod waits, under another configuration, for another object.

What has changed keeps its kind and its name; the rest of it may be that of other recorded objects.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from random import Random

from tests.parity.cross.drawing import Json, ask_as, chance, copy_of
from tests.parity.recorded import category_of

_PARTS = ("metadata", "spec", "status", "spec", "fields")
_OF_THE_OBJECT = ("apiVersion", "kind", "metadata", "spec", "status")
_KEPT = ("nodeName", "containers")
"""Of a spec: without them it is no longer the same sort of pod."""


def crossed_changes(recordings: Sequence[Json], scenarios: Sequence[Json], seed: int, count: int) -> Iterator[Json]:
    """As many changes. What is mixed in comes from recorded changes and from recorded scenarios."""
    pool = _objects_by_kind(recordings, scenarios)
    for number in range(count):
        random = chance(seed, number)
        question: Json = copy_of({**random.choice(recordings), "expect": None})
        del question["expect"]
        event = question["event"]
        if _is_about_itself(event):
            name = event["old"]["metadata"]["name"]
            event["old"] = _mix(random, event["old"], pool)
            event["old"]["metadata"]["name"] = name
        else:
            if random.random() < 0.8:
                question["pod"] = copy_of(random.choice(random.choice([recordings, scenarios]))["pod"])
            if random.random() < 0.3:
                question["config"] = random.choice(scenarios)["config"]
            ask_as(question["pod"], question["config"])
            _change(random, question, pool)
        question["id"] = f"{category_of(question['id'])}-{seed}x{number}"
        yield question


def _objects_by_kind(recordings: Sequence[Json], scenarios: Sequence[Json]) -> dict[str, list[Json]]:
    pool: dict[str, list[Json]] = defaultdict(list)
    for question in (*recordings, *scenarios):
        event = question.get("event", {})
        old_and_new = [side_object for side in ("old", "new") if (side_object := event.get(side))]
        for item in (*question["objects"], *old_and_new):
            pool[_kind(item)].append(item)
        pool["Pod"].append(question["pod"])
    return pool


def _is_about_itself(event: Json) -> bool:
    """Return True if the waiting pod is the one that changes."""
    return event["action"] == "Update" and _kind(event["new"]) == "Pod" and not event["new"]["spec"].get("nodeName")


def _change(random: Random, question: Json, pool: dict[str, list[Json]]) -> None:
    """Give the object parts of others, before the change or after it."""
    event = question["event"]
    side = random.choice([side for side in ("old", "new") if event.get(side)])
    for _ in range(random.randint(0, 2)):
        event_object = event[side]
        event[side] = _mix(random, event_object, pool)
        if side == "new":
            question["objects"] = [event["new"] if item == event_object else item for item in question["objects"]]


def _mix(random: Random, item: Json, pool: dict[str, list[Json]]) -> Json:
    """A copy of the object with something of another of its kind."""
    mixed: Json = copy_of(item)
    donor = random.choice(pool[_kind(item)])
    part = random.choice(_PARTS)
    if part == "metadata":
        _take(random, mixed[part], donor[part], ("labels", "annotations"), 0.7)
    elif part == "fields":
        mixed |= {name: copy_of(donor[name]) for name in donor if name not in _OF_THE_OBJECT and random.random() < 0.7}
    elif isinstance(donor.get(part), dict):
        mine = mixed.setdefault(part, {})
        _take(random, mine, donor[part], sorted({*donor[part], *mine} - {*_KEPT}), 0.5)
        if part == "spec" and "containers" in donor[part] and random.random() < 0.5:
            mine["containers"] = copy_of(donor[part]["containers"])
    return mixed


def _take(random: Random, mine: Json, donor: Json, names: Sequence[str], probability: float) -> None:
    """Take fields of the other; those that it lacks are removed."""
    for name in names:
        if random.random() < probability:
            mine.pop(name, None)
            if name in donor:
                mine[name] = copy_of(donor[name])


def _kind(item: Json) -> str:
    kind: str = item.get("kind", "Pod")
    return kind
