from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from podium.cel import CompileError, EvaluationError
from podium.devices import answers as answers_module
from podium.devices.answers import Looks
from podium.devices.interruptible import run_uninterrupted
from podium.devices.inventory import InventorySlice
from podium.devices.selectors import bind_device, compile_selector
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


@pytest.mark.long
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


EXPRESSIONS = [
    f'device.driver == "{DRIVER}"',
    f'device.attributes["{DRIVER}"].model == "a"',
    f'device.attributes["{DRIVER}"].?index.orValue(0) > 0',
    f'has(device.attributes["{DRIVER}"].model) && device.attributes["other.example.com"].model == "a"',
    f'device.capacity["{DRIVER}"].memory.compareTo(quantity("2Gi")) > 0',
    'device.attributes["other.example.com"].?model.hasValue()',
    "device.attributes.exists(domain, has(device.attributes[domain].uuid))",
    "device.allowMultipleAllocations",
    f'device.attributes["{DRIVER}"].firmware.isGreaterThan(semver("1.0.0"))',
]


def random_device(draws: Random) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "uuid": {"string": str(draws.random())},
        "model": {"string": draws.choice("ab")},
        "index": {"int": draws.randrange(2)},
        "firmware": {"version": draws.choice(["0.1.0", "1.2.3", "none"])},
        f"{DRIVER}/model": {"string": draws.choice("ab")},
        "other.example.com/model": {"string": draws.choice(["a", "b", "x" * 200])},
        "empty": {},
    }
    names = draws.sample(sorted(attributes), draws.randrange(len(attributes)))
    capacity = {"memory": {"value": draws.choice(["1Gi", "4Gi"])}} if draws.randrange(2) else {}
    flags = {"allowMultipleAllocations": True} if draws.randrange(4) == 0 else {}
    return device("g", capacity=capacity, **flags) | {"attributes": {name: attributes[name] for name in names}}


def outcome_of(find: Callable[[], bool]) -> Any:
    try:
        return find()
    except (CompileError, EvaluationError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("seed", range(10))
def test_devices_that_share_an_answer_have_the_one_that_each_would_find_by_itself(seed: int) -> None:
    draws, looks = Random(seed), Looks()
    for _ in range(300):
        driver = draws.choice([DRIVER, "other.example.com"])
        entry = InventorySlice(a_slice("s", random_device(draws), driver=driver), looks)
        for subject in entry.devices:
            expression = draws.choice(EXPRESSIONS)
            selector = compile_selector(expression)
            alone = outcome_of(lambda s=subject, of=selector: of.matches(bind_device(s.id.driver, s.device)))
            assert outcome_of(lambda s=subject, text=expression: s.matches(text)) == alone
            assert outcome_of(lambda s=subject, text=expression: s.matches(text)) == alone


def test_devices_that_differ_in_what_a_selector_does_not_read_share_its_answer(monkeypatch) -> None:
    evaluated = []
    monkeypatch.setattr(answers_module, "bind_device", lambda *args: evaluated.append(args) or bind_device(*args))
    devices = [device(f"g{number}", attributes={"uuid": f"u{number}", "model": "a"}) for number in range(5)]
    entry = InventorySlice(a_slice("s", *devices), Looks())
    assert [subject.matches(EXPRESSIONS[1]) for subject in entry.devices] == [True] * 5
    assert len(evaluated) == 1
