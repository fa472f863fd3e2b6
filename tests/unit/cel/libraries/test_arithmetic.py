import pytest

from podium.cel import CompileError, EvaluationError
from tests.unit.cel.devices import holds


@pytest.mark.parametrize(
    "expression",
    [
        "7 / 2 == 3",
        "-7 / 2 == -3",
        "-7 % 2 == -1",
        "7 % -2 == 1",
        "7u / 2u == 3u",
        "7u % 2u == 1u",
        "1u + 2u == 3u",
        "2u * 3u == 6u",
        "3u - 2u == 1u",
        "1.0 / 0.0 > 1e308",
        "-1.0 / 0.0 < -1e308",
        "1.5 * 2.0 == 3.0",
        "1.0 - 0.5 == 0.5",
        '"a" + "b" == "ab"',
        'b"a" + b"b" == b"ab"',
        "[1] + [2] == [1, 2]",
        'duration("1h") + duration("1m") == duration("61m")',
        'duration("1h") - duration("1m") == duration("59m")',
        'timestamp(0) + duration("1s") == timestamp(1)',
        'duration("1s") + timestamp(0) == timestamp(1)',
        'timestamp(1) - timestamp(0) == duration("1s")',
        'timestamp(1) - duration("1s") == timestamp(0)',
        "-(-1) == 1",
        "-(1.5) == -1.5",
        'device.attributes["gpu.example.com"].index + 1 == 4',
        'device.attributes["gpu.example.com"].index * 2 == 6',
    ],
)
def test_operators_have_the_results_of_the_cel_specification(expression):
    assert holds(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "9223372036854775807 + 1 > 0",
        "-9223372036854775808 - 1 < 0",
        "9223372036854775807 * 2 > 0",
        "-9223372036854775808 / -1 > 0",
        "-(-9223372036854775808) > 0",
        "0u - 1u == 0u",
        "18446744073709551615u + 1u > 0u",
        "1 / 0 == 1",
        "1 % 0 == 1",
        "1u / 0u == 1u",
        'timestamp("9999-12-31T23:59:59Z") + duration("1s") > timestamp(0)',
        'device.attributes["gpu.example.com"].index - 0.5 > 0.0',
    ],
)
def test_overflow_division_by_zero_and_mixed_types_are_errors(expression):
    with pytest.raises((CompileError, EvaluationError)):
        holds(expression)
