from hypothesis import given
from hypothesis import strategies as st

from podium.plugins.contrib.capacity_scheduling.amounts import exceeds, excess, plus, sum_exceeds

RESOURCES = st.dictionaries(st.sampled_from(("cpu", "memory", "pods", "nvidia.com/gpu", "x")), st.integers(-2, 3))


@given(RESOURCES, RESOURCES, RESOURCES)
def test_a_sum_exceeds_a_limit_as_if_it_were_made(first, second, limit):
    assert sum_exceeds(first, second, limit) is exceeds(plus(first, second), {}, limit, 0)


@given(RESOURCES, RESOURCES, RESOURCES, st.integers(0, 3))
def test_a_limit_is_exceeded_where_a_resource_is_above_it(extra, usage, limit, unlisted):
    assert exceeds(extra, usage, limit, unlisted) is bool(list(excess(extra, usage, limit, unlisted)))
