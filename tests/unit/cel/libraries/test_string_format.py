import pytest

from podium.cel import CompileError, EvaluationError
from tests.unit.cel.devices import holds


@pytest.mark.parametrize(
    "expression",
    [
        '"%s %s %s".format(["a", 1, true]) == "a 1 true"',
        '"%d%%".format([5]) == "5%"',
        '"%d".format([5u]) == "5"',
        '"%s".format([[1, "a", 2.5, true, null]]) == "[1, \\"a\\", 2.500000, true, null]"',
        '"%s".format([{"b": 1, "a": [2]}]) == "{\\"a\\":[2], \\"b\\":1}"',
        '"%.2f".format([1.005]) == "1.00"',
        '"%.0f".format([2.5]) == "2"',
        '"%f".format([0.5]) == "0.500000"',
        '"%x %X".format([255, "é"]) == "ff C3A9"',
        '"%o %b %b".format([8, 5, true]) == "10 101 1"',
        '"%x".format([-255]) == "-ff"',
        '"%s".format([timestamp(0)]) == "1970-01-01T00:00:00Z"',
        '"%s".format([[duration("1s")]]) == "[duration(\\"1s\\")]"',
        '"%s".format([type(1)]) == "int"',
        '"%s".format([2.0]) == "2"',
        '"%s".format([b"a"]) == "a"',
    ],
)
def test_values_are_put_into_a_string(expression):
    assert holds(expression)


@pytest.mark.parametrize(
    "expression",
    [
        'dyn("%d").format(["a"]) == ""',
        'dyn("%s").format([]) == ""',
        'dyn("%q").format([1]) == ""',
        'dyn("%").format([1]) == ""',
        'dyn("%s").format([quantity("1")]) == ""',
    ],
)
def test_value_that_is_refused_is_an_error(expression):
    with pytest.raises((CompileError, EvaluationError)):
        holds(expression)
