import pytest

from podium.cel import CompileError, EvaluationError
from podium.devices.selectors import compile_selector
from tests.unit.cel.devices import ATTRIBUTES, NEW, OLD, device_values, holds

COMPILE, RUN = CompileError, EvaluationError
LISTS = {
    "attributes": {
        "models": {"strings": ["a", "b"]},
        "numbers": {"ints": [1, 2]},
        "flags": {"bools": [True]},
        "versions": {"versions": ["1.0.0", "2.0.0"]},
        "model": {"string": "a"},
    }
}
LONG = "a" * 50


def outcome(expression, rules, **changes):
    """Whether the expression holds, or the kind of its error."""
    try:
        return holds(expression, rules, **changes)
    except (CompileError, EvaluationError) as error:
        return type(error)


@pytest.mark.parametrize(
    ("expression", "old", "new"),
    [
        ("dyn(true)", COMPILE, True),
        ("[dyn(true)][0]", COMPILE, True),
        (f"{ATTRIBUTES}.healthy", True, True),
        (f"{ATTRIBUTES}.model.all(x, true)", COMPILE, RUN),
        (f"{ATTRIBUTES}.model.map(x, x).size() == 0", COMPILE, RUN),
        (f"[{ATTRIBUTES}.model, 3].size() == 2", COMPILE, COMPILE),
        (f"'%d'.format([{ATTRIBUTES}.index]) == '3'", COMPILE, True),
        (f"{ATTRIBUTES}.model.includes('a100')", True, True),
        (f"{ATTRIBUTES}.index.includes(4)", False, False),
        ("device.driver.includes('gpu.example.com')", True, True),
        ("[1, 2].includes(2) && ![[1]].includes(1) && !{'a': 1}.includes('a')", True, True),
        ("includes([1], 1)", COMPILE, COMPILE),
        ("{'a-b': 1}.`a-b` == 1", COMPILE, True),
        ("has({'a/b c': 1}.`a/b c`) && !has({'a': 1}.`b`)", COMPILE, True),
        ("{'in': 1}.?`in`.value() == 1", COMPILE, True),
        ("device.`driver` == 'gpu.example.com'", COMPILE, True),
        ("`device`.driver == 'gpu.example.com'", COMPILE, COMPILE),
        ("{'a': 1}.`size`() == 1", COMPILE, COMPILE),
        ("[1].exists(device, .device.driver == 'gpu.example.com')", COMPILE, True),
        ("cel.bind(device, 1, .device.driver == 'gpu.example.com')", COMPILE, True),
        ("[1].exists(device, device == 1)", True, True),
        ("[1].all(x, .x == 1)", True, COMPILE),
        ("[1].all(int, .int == type(1))", COMPILE, COMPILE),
        (".device.driver == 'gpu.example.com' && .int == type(1)", True, True),
        ("[1].all(google, google.protobuf.Duration == type(duration('1s')))", True, COMPILE),
        ("cel.bind(q, optional.of(quantity('1')), q.value() == quantity('1'))", RUN, True),
        ("cel.bind(q, optional.of(optional.of(1)), q.value().value() == 1)", RUN, True),
        ("(true ? optional.of(quantity('1')) : optional.none()).value() == quantity('1')", RUN, True),
        ("(false ? optional.none() : optional.of(quantity('1'))).value() == quantity('1')", RUN, True),
        ("cel.bind(a, device.?attributes, a['none'].hasValue())", False, True),
        ("dyn(1).orValue(2) == 1", True, RUN),
        ("dyn(optional.of(1)).orValue(2) == 1", True, True),
        ("duration(size('a')) == duration('1s') || true", True, COMPILE),
        ("duration('60s') == duration(duration('1m'))", True, True),
        ("lists.range(-1) == []", True, RUN),
        ("lists.range(1000001).size() > 0 || true", RUN, True),
        ("lists.range(999999).size() > 0 || true", RUN, RUN),
        ("lists.range(3).size() == 3", True, True),
        ("'abc'.indexOf('', 10) == 10", True, False),
        ("'abc'.indexOf('', 10) == 3 && 'abc'.lastIndexOf('', 10) == 3", False, True),
        ("'abc'.indexOf('', -1) == 0", False, RUN),
        ("'abc'.lastIndexOf('', -1) == 0", False, RUN),
        ("'abc'.indexOf('c', 10) == -1 && 'abc'.lastIndexOf('c', 10) == -1", True, True),
        ("'abc'.indexOf('c', 2) == 2 && 'abc'.lastIndexOf('c', 2) == 2", True, True),
    ],
)
def test_each_minor_has_its_environment(expression, old, new):
    assert (outcome(expression, OLD), outcome(expression, NEW)) == (old, new)


@pytest.mark.parametrize(
    "expression",
    [
        "A.models.exists(m, m == 'b')",
        "A.models.includes('b')",
        "A.models == ['a', 'b'] && A.models.size() == 2 && A.models[1] == 'b'",
        "A.numbers.sum() == 3 && A.numbers.max() == 2",
        "A.versions.all(v, v.isLessThan(semver('3.0.0')))",
        "A.flags[0]",
        "A.model == 'a'",
    ],
)
def test_attributes_may_be_lists_in_newer_minors(expression):
    text = expression.replace("A", ATTRIBUTES)
    assert holds(text, **LISTS)
    with pytest.raises((CompileError, EvaluationError)):
        holds(text, OLD, **LISTS)


def test_a_list_of_versions_that_cannot_be_read_fails_every_selector():
    with pytest.raises(EvaluationError, match="attribute v: parse semantic version"):
        device_values(attributes={"v": {"versions": ["1.0.0", "x"]}})


def test_costs_count_the_entries_of_lists():
    many = {"attributes": {"models": {"strings": ["a"] * 300}}}
    assert not device_values(**many).is_small
    assert device_values(**LISTS).is_small


@pytest.mark.parametrize(
    ("expression", "old", "new"),
    [
        (f"'{LONG}'.startsWith('a')", 5, 1),
        (f"'x'.endsWith('{LONG}')", 1, 5),
        (f"matches('{LONG}', 'a+b+c+d+')", 1, 12),
        (f"'{LONG}'.matches('a+b+c+d+')", 12, 12),
        (f"'{LONG}'.includes('b')", 1, 5),
        ("[1, 2, 3, 4].includes(4)", 1, 4),
        ("lists.range(5).size() == 5", 18, 18),
    ],
)
def test_costs_are_those_of_the_minor(expression, old, new):
    assert [compile_selector(expression, rules).evaluate(device_values(rules=rules))[1] for rules in (OLD, NEW)] == [
        old,
        new,
    ]
