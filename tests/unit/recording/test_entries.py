"""Times are exact, and errors say what they said."""

from __future__ import annotations

import pytest

from podium.objects.api_errors import Conflict, OutcomeUnknown, Unreachable, may_have_happened
from podium.recording.entries import REFUSED, Times, error_of, outcome_of


def test_times_are_exact() -> None:
    for readings in ([0.1, 0.1 + 1e-12, 3.0, 1e9 / 7], [1_700_000_000.123456, 1_700_000_000.2]):
        writer_times, back = Times(), Times()
        steps = writer_times.steps(readings[:1]) + writer_times.steps([]) + writer_times.steps(readings[1:])
        assert [back.take(step) for step in steps] == readings


@pytest.mark.parametrize("is_in_doubt", [False, True])
def test_an_error_says_whether_a_request_before_it_may_have_taken_effect(is_in_doubt: bool) -> None:
    error = Conflict("changed", code=409)
    error.__context__ = OutcomeUnknown("broke") if is_in_doubt else Unreachable("no")
    outcome, fields = outcome_of(error)
    copy = error_of(list(fields))
    assert (outcome, str(copy), may_have_happened(copy)) == (REFUSED, "409: changed", is_in_doubt)
