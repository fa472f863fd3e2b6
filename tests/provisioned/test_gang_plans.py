"""Some of the cases that `python -m tests.provisioned --gangs 500` tries."""

from __future__ import annotations

import pytest

from tests.provisioned.gang_plans import check_gangs


@pytest.mark.parametrize("seed", range(1, 31))
def test_a_plan_for_gangs_is_the_cheapest_and_binds_just_the_pods_that_it_names(seed: int) -> None:
    assert check_gangs(seed).faults == []
