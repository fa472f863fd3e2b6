"""Answers are cut to a size, and say so."""

from __future__ import annotations

import json

import pytest

from podium.cli.bounded_answer import cut_to_size


def test_a_small_answer_is_left_as_it_is() -> None:
    assert cut_to_size({"pods": [1, 2]}, 2000) == {"pods": [1, 2]}


@pytest.mark.parametrize("bytes_max", [2000, 5000, 60_000])
def test_a_large_answer_fits_and_says_how_much_there_was(bytes_max: int) -> None:
    nodes = {f"node-{index}": [{"plugin": "Fit", "text": "x" * 50}] for index in range(5000)}
    answer = cut_to_size({"pod": "web", "blockers": nodes, "pods": list(range(3000))}, bytes_max)
    assert len(json.dumps(answer)) <= bytes_max * 1.2
    assert answer["pod"] == "web"
    assert answer["cut"]["totals"]["blockers"] == 5000
    assert f"more than {bytes_max}" in answer["cut"]["note"]
    assert 0 < len(answer["blockers"]) < 5000


def test_a_record_keeps_its_fields_and_a_long_text_is_cut() -> None:
    answer = cut_to_size({"pods": [{"pod": "web", "count": 1, "text": "y" * 9000}] * 100}, 2000)
    assert set(answer["pods"][0]) == {"pod", "count", "text"}
    assert answer["cut"]["totals"]["pods"] == 100


def test_what_cannot_be_shortened_is_not_shown_in_part() -> None:
    answer = cut_to_size({f"field-{index}": f"{index}" * 50 for index in range(500)}, 2000)
    assert list(answer) == ["cut"]
