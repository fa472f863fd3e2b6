import pytest

from podium.cel import CompileError, EvaluationError
from tests.unit.cel.devices import holds


@pytest.mark.parametrize(
    "expression",
    [
        "1 < 1.5",
        "2u > 1",
        "1.0 <= 1u",
        "-1 < 0u",
        "18446744073709551615u > 9223372036854775807",
        '"a" < "b"',
        'b"a" < b"b"',
        "false < true",
        'duration("1m") < duration("1h")',
        "timestamp(0) < timestamp(1)",
        '"é" > "z"',
        '"" < "a"',
        "1 in [1, 2]",
        "!(3 in [1, 2])",
        '"a" in {"a": 1}',
        "dyn(1) in [1.0, 2.0]",
        'dyn("a") in ["a"]',
        '!(dyn(1) in ["a"])',
        '!(dyn("1") in [1])',
        '!("a" in ["b"])',
        "[1] in [[1]]",
    ],
)
def test_values_are_ordered(expression):
    assert holds(expression)


@pytest.mark.parametrize(
    "expression",
    [
        'device.attributes["gpu.example.com"].model < 3',
        "0.0 / 0.0 < 1.0",
        "dyn(null) < 1",
        "[1] < [2]",
    ],
)
def test_value_that_is_refused_is_an_error(expression):
    with pytest.raises((CompileError, EvaluationError)):
        holds(expression)
