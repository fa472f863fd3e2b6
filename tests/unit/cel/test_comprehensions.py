import pytest

from podium.cel import EvaluationError
from podium.devices.selectors import compile_selector
from tests.unit.cel.devices import ATTRIBUTES, CAPACITY, device_values, holds


@pytest.mark.parametrize(
    "expression",
    [
        "[1, 0].exists(x, 1 / x == 1) && [0, 1].exists(x, 1 / x == 1) && ![0, 2].all(x, 1 / x == 1)",
        "[].all(x, false) && ![].exists(x, true) && ![].exists_one(x, true)",
        "[1, 2, 3].exists_one(x, x > 2) && ![1, 2, 3].exists_one(x, x > 1)",
        "[1, 2, 3].map(x, x * 2) == [2, 4, 6] && [1, 2, 3].map(x, x > 1, x * 2) == [4, 6] && [1].map(x, 1) == [1]",
        "[1, 2, 3].filter(x, x > 1) == [2, 3] && {'a': 1, 'b': 2}.filter(k, k > 'a') == ['b']",
        "{'a': 1}.all(k, v, k == 'a' && v == 1) && [5].exists(i, v, i == 0 && v == 5)",
        "[1, 2].existsOne(i, v, v == 2) && [1, 2].exists_one(i, v, v == 2)",
        "[1, 2].transformList(i, v, i + v) == [1, 3] && [1, 2].transformList(i, v, i > 0, v) == [2]",
        "['a', 'b'].transformMap(i, v, v + 'c') == {0: 'ac', 1: 'bc'} && ['a'].transformMap(i, v, false, v) == {}",
        "['a', 'b'].transformMapEntry(i, v, {v: i}) == {'a': 0, 'b': 1}",
        "{'a': {'b': 1}}.transformMap(k, v, v.size()) == {'a': 1}",
        "cel.bind(x, 3, x * x) == 9 && cel.bind(x, 1 / 0, true) && cel.bind(x, 1 / 0, x == 1 || true)",
        "cel.bind(x, 1, cel.bind(x, x + 1, x == 2) && x == 1)",
        "[1, 2].all(x, [3, 4].all(y, y > x))",
        "[[1], [2]].map(x, x.map(y, y + 1)) == [[2], [3]]",
        "optional.of(1).optMap(x, x + 1).value() == 2 && !optional.none().optMap(x, 1).hasValue()",
        "optional.of(1).optFlatMap(x, optional.of(x)).value() == 1",
        "optional.of(1).optMap(x, optional.of(2).optMap(x, x + 1).value() + x).value() == 4",
        "[3, 1, 2].sortBy(x, -x) == [3, 2, 1]",
        f"{CAPACITY}.all(k, v, v.isGreaterThan(quantity('1')))",
        f"{ATTRIBUTES}.exists(k, v, k == 'model' && v == 'a100')",
        "device.attributes.all(k, device.attributes[k].size() > 0)",
        "{true: 1}.all(k, k) && {1u: 1}.all(k, k == 1u)",
    ],
)
def test_macro_means_what_upstream_means(expression):
    assert holds(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "[0].map(x, 1 / x) == []",
        "[1].filter(x, dyn(1)) == []",
        "[1, 0].exists_one(x, 1 / x == 1)",
        "dyn(1).all(x, true)",
        "dyn('a').exists(i, v, true)",
        "['a', 'a'].transformMapEntry(i, v, {v: i}) == {}",
        "[1].all(x, dyn(x))",
        "cel.bind(x, 1 / 0, x == 1 || x == 2)",
        "[0].all(x, 1 / x == 1)",
    ],
)
def test_error_in_a_loop_is_an_error(expression):
    with pytest.raises(EvaluationError):
        holds(expression)


def test_bound_value_that_fails_is_computed_once():
    failing = "1 / 0"
    for name in ("a", "b", "c"):
        failing = f"cel.bind({name}, {failing}, {name} + {name})"
    nested = failing
    for _ in range(25):
        nested = f"cel.bind(x, {nested}, (x == 1 || x == 2) ? 1 : 2)"
    with pytest.raises(EvaluationError, match="division by zero"):
        compile_selector(f"{nested} == 1").matches(device_values())
