from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from podium.recording.recorder import _RecordedRandom
from podium.recording.replayed_client import ReplayedRandom

DRAWS: list[Callable[[Random], Any]] = [
    lambda random: random.randrange(7),
    lambda random: random.choice("abc"),
    lambda random: random.sample(range(100), 5),
    lambda random: random.uniform(0, 2),
    lambda random: random.random(),
    lambda random: random.getrandbits(40),
    lambda random: random.randrange(1, 1_000_000),
]


class Notes:
    """Takes the place of the recorder."""

    def __init__(self) -> None:
        self.numbers: list[Any] = []

    def note(self, _: int, number: Any) -> None:
        self.numbers.append(number)


class OlderRecordedRandom(_RecordedRandom):
    """Draws integers as recorders did that overrode `random` only."""

    _randbelow = Random._randbelow_without_getrandbits  # type: ignore[attr-defined]


def numbers_of(random: Random) -> list[Any]:
    return [draw(random) for draw in DRAWS * 20]


def replay_of(notes: Notes) -> list[Any]:
    numbers: Iterator[Any] = iter(notes.numbers)
    result = numbers_of(ReplayedRandom(lambda: next(numbers)))
    assert next(numbers, None) is None
    return result


def test_recording_draws_the_numbers_that_would_be_drawn_without_it() -> None:
    notes: Any = Notes()
    assert numbers_of(_RecordedRandom(notes, Random(3))) == numbers_of(Random(3))


@pytest.mark.parametrize("recorder_type", [_RecordedRandom, OlderRecordedRandom])
def test_replay_draws_what_was_recorded_by_this_recorder_and_older_ones(recorder_type: type[_RecordedRandom]) -> None:
    notes: Any = Notes()
    assert numbers_of(recorder_type(notes, Random(3))) == replay_of(notes)
