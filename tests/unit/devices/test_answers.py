import pytest

from podium.cel import CompileError, EvaluationError
from podium.devices.answers import Looks
from podium.devices.interruptible import run_uninterrupted
from podium.devices.step_budget import StepBudget
from tests.unit.devices.cluster import DRIVER, a_slice, device

LOOPS = "lists.range(100).all(a, lists.range(100).all(b, a + b >= 0))"
ENDLESS = "lists.range(1000).all(a, lists.range(1000).all(b, a + b >= 0))"


def look(looks, serial):
    (result,) = a_slice("s", device("g", attributes={"serial": serial})).spec.devices
    return looks.of(DRIVER, result)


def answers():
    return look(Looks(), "a")


def test_devices_of_an_inventory_that_look_alike_share_their_answers():
    looks = Looks()
    first = look(looks, "a")
    assert look(looks, "a") is first
    assert look(looks, "b") is not first
    assert answers() is not first


def test_short_evaluation_has_an_answer_soon():
    assert answers().soon(f'device.attributes["{DRIVER}"].serial == "a"', StepBudget(0)) is True
    assert answers().soon(f'device.attributes["{DRIVER}"].serial == "b"', StepBudget(0)) is False


@pytest.mark.parametrize("expression", [LOOPS, "true" + " && true" * 200])
def test_long_evaluation_is_yielded_as_work_and_its_answer_is_kept(expression):
    cache = answers()
    assert cache.soon(expression, StepBudget(0)) is None
    (work,) = cache.find(expression, StepBudget(0))
    assert callable(work)
    assert cache.soon(expression, StepBudget(0)) is True
    assert list(cache.find(expression, StepBudget(0))) == []


def test_long_text_is_evaluated_at_once_where_it_has_been_compiled():
    looks, expression = Looks(), "true" + " && true" * 1000
    first, second = look(looks, "a"), look(looks, "b")
    assert second.soon(expression, StepBudget(0)) is None
    assert run_uninterrupted(first.find(expression, StepBudget(0)))
    budget = StepBudget(0)
    assert second.soon(expression, budget) is True
    assert budget.is_turn_over


def test_long_evaluation_counts_as_many_steps():
    budget = StepBudget(0)
    assert run_uninterrupted(answers().find(LOOPS, budget))
    assert budget.is_turn_over


def test_after_many_steps_the_turn_is_over_before_another_evaluation():
    budget = StepBudget(0)
    budget.charge(8)
    assert answers().soon("true", budget) is None
    assert run_uninterrupted(answers().find("true", budget)) is True


@pytest.mark.parametrize(
    ("expression", "error", "text"),
    [
        ("device.nope", CompileError, "undefined field"),
        (f'device.attributes["{DRIVER}"].x', EvaluationError, "no such key: x"),
        (ENDLESS, EvaluationError, "actual cost limit exceeded"),
    ],
)
def test_error_is_kept_as_well_and_raised_each_time(expression, error, text):
    cache = answers()
    assert cache.soon(expression, StepBudget(0)) is None
    for works in ((1 if expression == ENDLESS else 0), 0):
        result = cache.find(expression, StepBudget(0))
        for _ in range(works):
            next(result)
        with pytest.raises(error, match=text):
            next(result)
