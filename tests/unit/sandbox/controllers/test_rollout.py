import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.sandbox.controllers.rollout import Replicas, bounds, next_step, share


@pytest.mark.parametrize(
    ("amount", "up", "expected"), [("25%", True, 3), ("25%", False, 2), (4, True, 4), ("4", True, 4), ("x", True, 0)]
)
def test_a_share_is_a_number_or_a_percentage(amount, up, expected):
    assert share(amount, 10, up=up) == expected


def test_a_rolling_update_that_allows_nothing_takes_down_one():
    limits = {"maxSurge": 0, "maxUnavailable": 0}
    assert bounds({"replicas": 3, "strategy": {"rollingUpdate": limits}}) == (3, 2)


@given(
    st.integers(0, 12),
    st.integers(0, 12),
    st.integers(0, 12),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=3),
    st.data(),
)
def test_a_step_stays_within_its_bounds(desired, surge, unavailable, olds, data):
    most, least = desired + surge, max(0, desired - unavailable)
    wanted = data.draw(st.integers(0, desired))
    new = Replicas(wanted, data.draw(st.integers(0, wanted)))
    old = [Replicas(wanted, min(wanted, available)) for wanted, available in olds]
    total, available = new.wanted + sum(o.wanted for o in old), new.available + sum(o.available for o in old)
    grown, left = next_step(desired, most, least, new, old)
    assert new.wanted <= grown <= desired
    assert grown + sum(left) <= max(total, most)
    assert all(0 <= kept <= each.wanted for kept, each in zip(left, old, strict=True))
    kept_available = new.available + sum(min(each.available, kept) for each, kept in zip(old, left, strict=True))
    assert kept_available >= min(available, least)
