import string
import threading

import pytest

from podium.cel import COST_LIMIT, CompileError, EvaluationError
from podium.devices.selectors import compile_selector
from tests.unit.cel.devices import ATTRIBUTES, CAPACITY, device_values, holds


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ("true", 0),
        ('device.driver == "gpu.example.com"', 4),
        (f"has({ATTRIBUTES}.model) && {ATTRIBUTES}.index == 3", 8),
        (f"{CAPACITY}.memory.isGreaterThan(quantity('1'))", 6),
        (f"{CAPACITY}.?memory.optMap(m, m.isGreaterThan(quantity('1'))).orValue(false)", 14),
        ("[1, 2, 3].exists(x, x > 1)", 16),
        ("[1, 2, 3].all(x, x > 0)", 16),
        ("[1, 2, 3].map(x, x > 1, x * 2) == [4, 6]", 36),
        ("[1, 2, 3].filter(x, x > 1).size() == 2", 35),
        ("[1, 2, 3].exists_one(x, x > 2)", 10),
        (f"{ATTRIBUTES}.model.matches('^a')", 5),
        ("'a'.replace('a', 'b') == 'b'", 2),
        (f"true ? {ATTRIBUTES}.healthy : false", 3),
        ("1 in [1, 2]", 0),
    ],
)
def test_costs_are_upstreams(expression, cost):
    assert compile_selector(expression).evaluate(device_values())[1] == cost


DEAR = "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))"


def test_selector_that_costs_too_much_is_an_error_that_nothing_absorbs():
    for expression in (DEAR, f"{DEAR} || true", f"true && {DEAR}", f"[1].exists(x, {DEAR})"):
        with pytest.raises(EvaluationError, match="cost limit exceeded"):
            compile_selector(expression).evaluate(device_values(), cost_limit=10_000)
    with pytest.raises(EvaluationError, match="cost limit exceeded"):
        compile_selector("[1, 2, 3].all(x, x > 0)").evaluate(device_values(), cost_limit=15)
    assert compile_selector("[1, 2, 3].all(x, x > 0)").evaluate(device_values(), cost_limit=16) == (True, 16)
    assert COST_LIMIT == 1_000_000


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(9223372036854775807).size() > 0",
        "lists.range(100000000).size() > 0",
        f"cel.bind(a, 'x'.replace('', '{'y' * 2000}'), cel.bind(b, a.replace('', a), b.replace('', b) == b))",
        "cel.bind(a, lists.range(3000000), (a + a + a + a).size() > 0)",
        "['" + "x" * 5000 + "'].map(x, x.split('').join(x)).map(x, x.split('').join(x))[0].size() > 0",
        "strings.quote(" * 30 + "'a'" + ")" * 30 + " == ''",
    ],
)
def test_value_that_grows_without_bounds_is_an_error(expression):
    with pytest.raises(EvaluationError):
        holds(expression)


@pytest.mark.long
@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(400000).distinct().size() > 0",
        "[[dyn(1)]].flatten(9223372036854775807).size() > 0",
        "lists.range(400000).sort().size() > 0",
        "sets.contains(lists.range(400000), lists.range(400000))",
        f"[{', '.join(map(str, range(15_000)))}].distinct().size() > 0",
        f"'{string.ascii_letters}'.matches('(.?){{999}}(.?){{999}}!') || true",
        "'" + "ab" * 20_000 + "'.findAll('(a?){500}(b?){500}c').size() > 0 || true",
    ],
)
def test_call_that_would_take_long_does_not_run(expression):
    with pytest.raises(EvaluationError, match=r"cost limit exceeded|takes too long"):
        holds(expression)


@pytest.mark.parametrize("expression", [f"{ATTRIBUTES}.model", f"{ATTRIBUTES}.index", f"{ATTRIBUTES}.driverVersion"])
def test_answer_that_is_no_bool_is_an_error(expression):
    with pytest.raises(EvaluationError, match="could not be converted to bool"):
        holds(expression)


@pytest.mark.long
@pytest.mark.parametrize(
    ("pair", "use"),
    [
        ("[{0}, {0}]", "[{0}] == [{0}]"),
        ("{{'a': {0}, 'b': {0}}}", "{0} == {0}"),
        ("[{0}, {0}]", "{0} in [{0}]"),
        ("[{0}, {0}]", "sets.contains([{0}], [{0}])"),
        ("[{0}, {0}]", "'%s'.format([{0}]) == ''"),
        ("{{'a': {0}, 'b': {0}}}", "'%s'.format([{0}]) == ''"),
        ("[{0}, {0}]", "{0}.flatten(50) == []"),
    ],
)
def test_value_that_contains_another_many_times_over_is_not_looked_at_to_the_end(pair, use):
    expression = use.format("x40")
    for level in range(40, 0, -1):
        expression = f"cel.bind(x{level}, {pair.format(f'x{level - 1}')}, {expression})"
    selector = compile_selector(f"cel.bind(x0, ['{'a' * 300}'], {expression})")
    for _ in range(2):
        with pytest.raises(EvaluationError, match="nested values have more than 30000 elements"):
            selector.matches(device_values())


def test_expression_is_compiled_once():
    assert compile_selector("device.driver == 'a'") is compile_selector("device.driver == 'a'")


@pytest.mark.parametrize(
    ("expression", "driver"),
    [
        ("device.driver == 'a'", "a"),
        (f"{ATTRIBUTES}.index == 1 && ('a' == device.driver && true)", "a"),
        ("device.driver == 'a' || true", None),
        ("device.driver != 'a'", None),
        ("!(device.driver == 'a')", None),
        ("['a'].exists(device, device == 'a')", None),
        ("true", None),
    ],
)
def test_selector_knows_the_only_driver_that_it_selects(expression, driver):
    assert compile_selector(expression).driver == driver


@pytest.mark.parametrize(
    ("expression", "fields"),
    [
        (
            f"{ATTRIBUTES}.model == 'a' && {CAPACITY}.memory.isInteger()",
            [("attributes", "model"), ("capacity", "memory")],
        ),
        (f"{ATTRIBUTES}['model'] == 'a' || {ATTRIBUTES}.?model.hasValue()", [("attributes", "model")]),
        (f"has({ATTRIBUTES}.index)", [("attributes", "index")]),
    ],
)
def test_selector_knows_what_it_reads_of_a_device(expression, fields):
    reads = compile_selector(expression).reads()
    assert reads == tuple((kind, f"gpu.example.com/{name}") for kind, name in fields)
    assert compile_selector("device.driver == 'a' && true").reads() == (("driver", ""),)


def test_value_of_another_type_than_was_inferred_does_no_harm():
    for expression in ("dyn(1).orValue(ip('::1')).isLoopback()", "optional.none().or(dyn(1)).hasValue()"):
        with pytest.raises(EvaluationError, match="no such overload"):
            holds(expression)


def test_deeply_nested_macros_are_a_compile_error():
    with pytest.raises(CompileError, match="nests too deeply"):
        compile_selector("[1].all(x, " * 240 + "true" + ")" * 240)
    assert compile_selector("[1].all(x, " * 40 + "true" + ")" * 40).matches(device_values())


@pytest.mark.parametrize(
    ("expression", "fields"),
    [
        ("device.driver == 'a' && true", (("driver", ""),)),
        ("device.attributes['a.b'].x == 1 || has(device.capacity['a.b'].y)", ("attributes/x", "capacity/y")),
        ("'a.b' in device.attributes", None),
        ("device.attributes[device.driver].x == 1", None),
        ("device.attributes['a.b'].x == 1 && device.attributes.exists(d, d == 'c')", None),
        ("[device].all(d, d.driver == 'a')", None),
        ("true", ()),
    ],
)
def test_selector_knows_whether_it_reads_only_some_fields(expression, fields):
    names = compile_selector(expression).fields()
    if fields and isinstance(fields[0], str):
        fields = tuple((kind, f"a.b/{name}") for kind, name in (field.split("/") for field in fields))
    assert (None if names is None else {*names}) == (None if fields is None else {*fields})


def test_threads_share_a_selector():
    selector = compile_selector(
        f"{ATTRIBUTES}.model.matches('^[a-h]+[0-9]*$') && [1, 2, 3].exists(x, x == {ATTRIBUTES}.index)"
    )
    devices = [
        device_values(attributes={"model": {"string": f"{'a' * i}1"}, "index": {"int": i % 5}}) for i in range(1, 40)
    ]
    matches = [selector.matches(device) for device in devices]
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append([selector.matches(device) for device in devices]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [matches] * 4
