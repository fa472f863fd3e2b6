"""The first decision that differs is named, with the event before it."""

from __future__ import annotations

from random import Random
from typing import Any

from podium.objects.resource_types import NODES
from podium.recording.comparison import first_difference
from podium.recording.tape import DECIDED, PUT, REMOVE, RESUME, Decided
from tests.builders import node


def decided(number: int, on: str, uid: str = "") -> Any:
    return (DECIDED, *Decided(uid or f"u{number}", f"default/web-{number}", "Suggested", on, 3, 2, 170, None, ()))


def entries(*made: Any) -> Any:
    return made


def test_recordings_with_the_same_decisions_do_not_differ() -> None:
    one = entries(decided(1, "n1"), (RESUME, 1), decided(2, "n2"))
    other = entries(decided(1, "n1", uid="another"), decided(2, "n2"))
    assert first_difference(one, other) is None


def test_first_difference_is_named_with_the_event_before_it() -> None:
    one = entries(decided(1, "n1"), (PUT, NODES.path, node("n3")), decided(2, "n3"), decided(3, "n1"))
    other = entries(decided(1, "n1"), (REMOVE, NODES.path, "n2"), decided(2, "n1"), decided(3, "n2"))
    found = first_difference(one, other)
    assert found is not None
    assert found.one is not None
    assert found.other is not None
    assert (found.attempt, found.one.decided.node, found.other.decided.node) == (2, "n3", "n1")
    assert found.one.event == "Node n3 was added or has changed"
    assert found.other.event == "Node n2 was deleted"


def test_recording_that_ends_earlier_differs_there() -> None:
    found = first_difference(entries(decided(1, "n1")), entries(decided(1, "n1"), decided(2, "n1")))
    assert found is not None
    assert found.attempt == 2
    assert found.one is None


def test_planted_differences_are_found_where_they_are() -> None:
    random = Random(1)
    for _ in range(50):
        nodes = [random.choice(("n1", "n2", "n3")) for _ in range(40)]
        place = random.randrange(40)
        changed = [*nodes[:place], "n4", *(random.choice(("n1", "n2")) for _ in range(random.randrange(40)))]
        one, other = (entries(*(decided(at, on) for at, on in enumerate(made))) for made in (nodes, changed))
        found = first_difference(one, other)
        assert found is not None
        assert found.attempt == place + 1
