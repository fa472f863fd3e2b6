import pytest

from podium.devices import StepsExceededError
from podium.devices.step_budget import StepBudget


def test_search_is_interrupted_after_some_steps_each_time():
    budget = StepBudget(0)
    assert [at for at in range(1, 30) if budget.take()] == [8, 16, 24]


def test_steps_of_a_selector_end_a_turn_sooner():
    budget = StepBudget(0)
    budget.charge(100)
    assert budget.is_turn_over
    assert budget.take()
    assert not budget.is_turn_over


def test_steps_of_selectors_count_on_the_nodes_that_follow_and_others_do_not():
    budget = StepBudget(100)
    for _ in range(90):
        budget.take()
    budget.start_search()
    budget.charge(80)
    budget.take()
    budget.start_search()
    for _ in range(20):
        budget.take()
    with pytest.raises(StepsExceededError):
        budget.take()


@pytest.mark.parametrize("steps_max", [1, 7, 8, 9])
def test_search_ends_after_so_many_steps(steps_max):
    budget = StepBudget(steps_max)
    for _ in range(steps_max):
        budget.take()
    with pytest.raises(StepsExceededError):
        budget.take()
