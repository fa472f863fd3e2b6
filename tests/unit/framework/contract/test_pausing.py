"""When a turn is over, by a clock that only the test moves."""

from __future__ import annotations

import pytest

from podium.framework.contract.pausing import Turn
from podium.lib.clock import ManualClock


def looks_until_over(*gaps_ms: float) -> int | None:
    """How many looks a plugin makes before it is told to pause; None if it is not. The gaps are before each look."""
    clock = ManualClock()
    turn = Turn(clock)
    turn.open()
    for number, gap_ms in enumerate(gaps_ms, 1):
        clock.advance(gap_ms / 1e3)
        if turn.is_over:
            return number
    return None


@pytest.mark.parametrize(
    ("gaps_ms", "looks"),
    [
        pytest.param([0.3] * 15, None, id="a short search"),
        pytest.param([0.3] * 40, 18, id="a long search"),
        pytest.param([0.1, 0.1, 12.0, 0.1, 0.1], None, id="a short search while another process has the core once"),
        pytest.param([0.3, 12.0, *[0.3] * 40], 18, id="a long search while another process has the core once"),
        pytest.param([0.1, 12.0, 0.1, 12.0], 4, id="the core is lost twice"),
        pytest.param([3.0] * 5, 3, id="dear selectors"),
        pytest.param([25.0], 1, id="one that nothing excuses"),
    ],
)
def test_a_turn_ends_by_its_work_and_not_by_one_gap_without_a_core(gaps_ms: list[float], looks: int | None) -> None:
    assert looks_until_over(*gaps_ms) == looks


def test_a_turn_that_is_not_open_is_never_over() -> None:
    clock = ManualClock()
    turn = Turn(clock)
    clock.advance(1.0)
    assert not turn.is_open
    assert not turn.is_over
    turn.open()
    turn.close()
    clock.advance(1.0)
    assert not turn.is_over
