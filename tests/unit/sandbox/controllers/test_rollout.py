import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.sandbox.controllers.rollout import Replicas, bounds, next_step, share


@pytest.mark.parametrize(
    ("amount", "up", "count"), [("25%", True, 3), ("25%", False, 2), (4, True, 4), ("4", True, 4), ("x", True, 0)]
)
def test_a_share_is_a_number_or_a_percentage(amount, up, count):
    assert share(amount, 10, up=up) == count


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
def test_a_step_stays_within_its_bounds(count, surge, unavailable, olds, data):
    pods_max, least = count + surge, max(0, count - unavailable)
    replica_count = data.draw(st.integers(0, count))
    new = Replicas(replica_count, data.draw(st.integers(0, replica_count)))
    old = [Replicas(replica_count, min(replica_count, available)) for replica_count, available in olds]
    total, available = new.wanted + sum(o.wanted for o in old), new.available + sum(o.available for o in old)
    grown, old_counts = next_step(count, pods_max, least, new, old)
    assert new.wanted <= grown <= count
    assert grown + sum(old_counts) <= max(total, pods_max)
    assert all(0 <= old_count <= replicas.wanted for old_count, replicas in zip(old_counts, old, strict=True))
    kept_available = new.available + sum(
        min(replicas.available, old_count) for replicas, old_count in zip(old, old_counts, strict=True)
    )
    assert kept_available >= min(available, least)
