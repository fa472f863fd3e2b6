"""The most that a consolidation could save."""

import pytest

from podium.provisioner.reports.consolidation_plan import ConsolidationOptions, plan_consolidation
from podium.provisioner.reports.savings_bound import savings_bound
from tests.unit.provisioner.clusters import CAPACITY_TYPE, pod, requirement
from tests.unit.provisioner.fleets import machine, node_pool, state_of
from tests.unit.provisioner.random_fleets import any_fleet

ON_DEMAND = [requirement(CAPACITY_TYPE, "In", "on-demand")]


def test_the_bound_is_what_is_left_of_the_price_in_fractions_of_nodes():
    state = state_of(machine("a", 4), pod("web", node="a", cpu="1"), node_pool(requirements=ON_DEMAND))
    # The node costs 0.4 an hour; a core of a spot node costs 0.07 and a bit, since every node keeps a part for itself.
    assert 0.32 < savings_bound(state) < 0.4


def test_only_an_exhaustive_search_says_it():
    state = state_of(machine("a"), machine("b"), pod("web", node="a"), node_pool(requirements=ON_DEMAND))
    assert plan_consolidation(state).savings_max is None
    plan = plan_consolidation(state, ConsolidationOptions(search="exhaustive"))
    assert plan.savings_max is not None
    assert plan.as_dict()["hourly_savings_max"] == plan.savings_max >= plan.savings


@pytest.mark.parametrize("seed", range(20))
def test_no_search_saves_more(seed: int):
    state = any_fleet(seed)
    savings_max = savings_bound(state)
    for search in ("prefix", "greedy"):
        plan = plan_consolidation(state, ConsolidationOptions(search=search, ignore_budgets=True))
        assert plan.savings <= savings_max + 1e-9
