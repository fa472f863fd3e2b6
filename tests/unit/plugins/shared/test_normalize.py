from __future__ import annotations

import numpy as np
import pytest

from podium.plugins.shared.normalize import default_normalize, truncated_quotient


@pytest.mark.parametrize(
    ("scores", "reverse", "scores_expected"),
    [
        ([1, 2, 3], False, [33, 66, 100]),
        ([1, 2, 3], True, [67, 34, 0]),
        ([0, 0], False, [0, 0]),
        ([0, 0], True, [100, 100]),
        ([], True, []),
        ([-1, 3], False, [-33, 100]),
        ([-5, 0], False, [-5, 0]),
    ],
)
def test_the_highest_score_becomes_100_and_the_rest_follows(
    scores: list[int], reverse: bool, scores_expected: list[int]
) -> None:
    normalized = default_normalize(np.array(scores, np.int64), reverse=reverse)
    assert normalized.dtype == np.int64
    assert normalized.tolist() == scores_expected


def test_quotients_are_truncated_towards_zero() -> None:
    assert truncated_quotient(np.array([7, -7, -6, 0]), 3).tolist() == [2, -2, -2, 0]
