"""The first decision that differs is named, with the event before it."""

from __future__ import annotations

from itertools import starmap
from random import Random
from typing import Any

from podium.objects.resource_types import NODES
from podium.recording.comparison import first_difference
from podium.recording.entries import PUT, REMOVE, RESUME
from tests.builders import node
from tests.unit.recording.contents import decision_entry


def decision(number: int, node_name: str, uid: str = "") -> Any:
    return decision_entry(uid or f"u{number}", node_name, name=f"web-{number}")


def recording(*entries: Any) -> Any:
    return entries


def test_recordings_with_the_same_decisions_do_not_differ() -> None:
    first = recording(decision(1, "n1"), (RESUME, 1), decision(2, "n2"))
    right = recording(decision(1, "n1", uid="another"), decision(2, "n2"))
    assert first_difference(first, right) is None


def test_first_difference_is_named_with_the_event_before_it() -> None:
    first = recording(decision(1, "n1"), (PUT, NODES.path, node("n3")), decision(2, "n3"), decision(3, "n1"))
    right = recording(decision(1, "n1"), (REMOVE, NODES.path, "n2"), decision(2, "n1"), decision(3, "n2"))
    difference = first_difference(first, right)
    assert difference is not None
    assert difference.attempt == 2
    events = [side and (side.decision.node, side.event) for side in difference.decisions]
    assert events == [("n3", "Node n3 was added or has changed"), ("n1", "Node n2 was deleted")]


def test_recording_that_ends_earlier_differs_there() -> None:
    difference = first_difference(recording(decision(1, "n1")), recording(decision(1, "n1"), decision(2, "n1")))
    assert difference is not None
    assert difference.attempt == 2
    assert difference.decisions[0] is None


def test_planted_differences_are_found_where_they_are() -> None:
    random = Random(1)
    for _ in range(50):
        nodes = [random.choice(("n1", "n2", "n3")) for _ in range(40)]
        place = random.randrange(40)
        variant = [*nodes[:place], "n4", *(random.choice(("n1", "n2")) for _ in range(random.randrange(40)))]
        first, right = (recording(*starmap(decision, enumerate(names))) for names in (nodes, variant))
        difference = first_difference(first, right)
        assert difference is not None
        assert difference.attempt == place + 1
