from __future__ import annotations

import enum

import pytest

from podium.lib.state_table import InvalidTransition, StateTable


class Door(enum.Enum):
    OPEN = enum.auto()
    SHUT = enum.auto()


class Hand(enum.Enum):
    PUSH = enum.auto()
    PULL = enum.auto()


DOORS = StateTable("door", {(Door.OPEN, Hand.PUSH): Door.SHUT, (Door.SHUT, Hand.PULL): Door.OPEN})


def test_the_table_says_what_comes_next() -> None:
    assert DOORS.next(Door.OPEN, Hand.PUSH) is Door.SHUT
    assert DOORS.next(Door.SHUT, Hand.PULL) is Door.OPEN


def test_what_is_not_in_the_table_cannot_happen() -> None:
    with pytest.raises(InvalidTransition, match=r"^door: PULL in state OPEN$") as raised:
        DOORS.next(Door.OPEN, Hand.PULL)
    assert (raised.value.machine, raised.value.state, raised.value.event) == ("door", Door.OPEN, Hand.PULL)


def test_an_invalid_transition_shows_the_story() -> None:
    assert str(InvalidTransition("door", Door.OPEN, Hand.PULL, "it was opened")).splitlines() == [
        "door: PULL in state OPEN",
        "it was opened",
    ]


def test_the_diagram_is_drawn_from_the_table() -> None:
    assert DOORS.mermaid().splitlines() == [
        "stateDiagram-v2",
        "    OPEN --> SHUT: PUSH",
        "    SHUT --> OPEN: PULL",
    ]
