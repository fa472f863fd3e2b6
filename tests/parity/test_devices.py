"""260 attempts at a pod with resource claims: what DynamicResources decides is what kube-scheduler 1.36.2 decided.

Extended resources that devices back are not decided yet, and neither are the 40 recorded queues.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.parity.devices import answer
from tests.parity.recorded import DEVICES, categories, category_of, differences, scenarios, without_empty

UNDECIDED = ("dra-extended", "devicesequence")
_CEL_ERRORS = ("CEL compile error", "CEL runtime error")


def comparable(value: Any) -> Any:
    """The answer without the ids of shares, and without the words in which an expression is found wrong."""
    if isinstance(value, dict):
        return {key: "*" if key == "shareID" else comparable(each) for key, each in value.items()}
    if isinstance(value, list):
        return [comparable(each) for each in value]
    if isinstance(value, str):
        for words in _CEL_ERRORS:
            value = value.partition(words)[0] + "CEL error" if words in value else value
    return value


@pytest.mark.parametrize("category", [each for each in categories(DEVICES) if each not in UNDECIDED])
def test_pod_gets_the_devices_that_upstream_gives_it(category):
    found = []
    for scenario, line in scenarios(DEVICES):
        if category_of(scenario["id"]) == category:
            own = answer(scenario, line)
            assert own.pop("id") == scenario["id"]
            expected = comparable(without_empty(scenario["expect"]))
            found += [f"{scenario['id']}: {each}" for each in differences(expected, comparable(without_empty(own)))]
    assert found == []


def test_no_question_is_left_out():
    kinds = [category_of(scenario["id"]) for scenario, _ in scenarios(DEVICES)]
    assert (len(kinds), len([each for each in kinds if each not in UNDECIDED])) == (300, 247)
