import pytest

from podium.cel import EvaluationError
from tests.unit.cel.devices import ATTRIBUTES, CAPACITY, NEW, OLD, holds


@pytest.mark.parametrize(
    "expression",
    [
        "device.attributes['none'] == {}",
        "device.attributes['none'].size() == 0",
        "has(device.attributes.none)",
        "device.attributes[?'none'].hasValue()",
        "!('none' in device.attributes)",
        "device.attributes.size() == 2",
        "!device.attributes.exists(k, k == 'none')",
        "!has(device.attributes['none'].x)",
        "device.?attributes['none'].hasValue()",
        "!device.attributes['none'].?x.hasValue()",
        "cel.bind(a, device.?attributes, a['none'].hasValue())",
    ],
)
def test_unknown_domain_is_an_empty_map(expression):
    assert holds(expression)


@pytest.mark.parametrize(
    "expression",
    [
        f"{ATTRIBUTES}.model == 'a100' && {ATTRIBUTES}['index'] == 3",
        "device.attributes['vendor.example.com'].uuid == 'GPU-0'",
        "[1, 2][1] == 2 && [1, 2][dyn(1u)] == 2 && [1, 2][dyn(1.0)] == 2",
        "{1: 2}[dyn(1u)] == 2 && {1: 2}[dyn(1.0)] == 2",
        "{true: 1}[true] == 1 && !(dyn(true) in {1: 1})",
        "[1][?0].value() == 1 && ![1][?5].hasValue()",
        "{'a': {'b': 1}}.?a.b.value() == 1 && !{'a': 1}.?b.hasValue()",
        f"!{ATTRIBUTES}.?nope.x.y.hasValue()",
        f"!has({ATTRIBUTES}.model.x)",
        "optional.of({'a': 1}).a.value() == 1",
        f"has({ATTRIBUTES}.?model.x) == false",
        "{1: 2, 1: 3}[1] == 3",
        "!(dyn(b'a') in {})",
    ],
)
def test_parts_of_values_are_found(expression):
    assert holds(expression)


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        (f"{ATTRIBUTES}.nope == 1", "no such key: nope"),
        ("device.attributes['none'].foo == 1", "no such key: foo"),
        (f"{CAPACITY}.nope.isInteger()", "no such key: nope"),
        ("[1][1] == 1", "index out of bounds: 1"),
        ("[1][-1] == 1", "index out of bounds: -1"),
        ("{'a': 1}['b'] == 1", "no such key: b"),
        ("dyn('abc')[0] == 'a'", "no such key: 0"),
        ("[1][dyn('a')] == 1", "unsupported index type 'string' in list"),
        ("dyn(b'a') in {'a': 1}", "unhashable"),
        (f"{ATTRIBUTES}.driverVersion in [1, 2]", "unhashable"),
    ],
)
def test_missing_part_is_an_error(expression, problem):
    with pytest.raises(EvaluationError, match=problem):
        holds(expression)


def test_optional_quantity_does_not_survive_a_variable_in_older_minors():
    optional = f"{CAPACITY}.?memory"
    for rules in (OLD, NEW):
        assert holds(f"{optional}.value().isGreaterThan(quantity('1'))", rules)
        assert holds(f"{optional}.optMap(m, m.isGreaterThan(quantity('1'))).orValue(false)", rules)
        assert holds(f"cel.bind(m, {optional}, m.hasValue())", rules)
    assert holds(f"cel.bind(m, {optional}, m.value().isGreaterThan(quantity('1')))")
    with pytest.raises(EvaluationError, match="unsupported conversion"):
        holds(f"cel.bind(m, {optional}, m.value().isGreaterThan(quantity('1')))", OLD)
