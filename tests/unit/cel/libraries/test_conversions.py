import pytest

from podium.cel import CompileError, EvaluationError
from tests.unit.cel.devices import holds


@pytest.mark.parametrize(
    "expression",
    [
        'int("12") == 12',
        'int("-5") == -5',
        'int("+5") == 5',
        "int(2.9) == 2",
        "int(-2.9) == -2",
        "int(5u) == 5",
        'uint("5") == 5u',
        "uint(5) == 5u",
        "uint(5.9) == 5u",
        'double("1.5") == 1.5',
        "double(3) == 3.0",
        "double(3u) == 3.0",
        'bool("true")',
        '!bool("FALSE")',
        'bool("1")',
        "bool(true)",
        'string(true) == "true"',
        'string(2.0) == "2"',
        'string(1e6) == "1e+06"',
        'string(123456.0) == "123456"',
        'string(1e-5) == "1e-05"',
        'string(0.1) == "0.1"',
        'string(5) == "5"',
        'string(5u) == "5"',
        'string(b"a") == "a"',
        'bytes("é").size() == 2',
        'string("a") == "a"',
        "int(timestamp(5)) == 5",
        'int(duration("1s")) == 1000000000',
        'string(duration("1h1ms")) == "3600.001s"',
        'string(timestamp("2020-01-01T00:00:00.5+02:00")) == "2020-01-01T00:00:00.5+02:00"',
        'string(timestamp(0)) == "1970-01-01T00:00:00Z"',
        'double("inf") > 1.0',
        'double("0x1p-2") == 0.25',
        'double(".5") == 0.5',
    ],
)
def test_values_are_converted(expression):
    assert holds(expression)


@pytest.mark.parametrize(
    "expression",
    [
        'int("1.5") == 1',
        'int("") == 1',
        'int(" 1") == 1',
        'int("1_0") == 10',
        "int(1e100) == 1",
        "uint(-1) == 1u",
        'uint("+1") == 1u',
        'uint("-1") == 1u',
        'double("x") == 1.0',
        'double("1e999") == 1.0',
        'bool("yes")',
        'string(b"\\xff") == ""',
        "int(18446744073709551615u) == 1",
        "timestamp(9223372036854775807) == timestamp(0)",
    ],
)
def test_value_that_is_refused_is_an_error(expression):
    with pytest.raises((CompileError, EvaluationError)):
        holds(expression)
