import pytest

from podium.cel import CompileError, EvaluationError
from tests.unit.cel.devices import holds


@pytest.mark.parametrize(
    "expression",
    [
        'quantity("1Mi").add(1) == quantity("1048577")',
        'quantity("2").sub(quantity("1")) == quantity("1")',
        'quantity("40Gi") == quantity("40960Mi")',
        'quantity("40Gi").compareTo(quantity("1k")) == 1',
        'quantity("1").isLessThan(quantity("2"))',
        'quantity("2").isGreaterThan(quantity("1"))',
        'sign(quantity("-0.5")) == -1',
        'sign(quantity("0")) == 0',
        'sign(quantity("1")) == 1',
        'isQuantity("10Gi")',
        '!isQuantity("200K")',
        'quantity("1k").isInteger()',
        'quantity("1e3").isInteger()',
        'quantity("40Gi").isInteger()',
        'quantity("1e3").asInteger() == 1000',
        '!quantity("1.0").isInteger()',
        '!quantity("0.5").isInteger()',
        '!quantity("100m").isInteger()',
        '!quantity("1.5Gi").isInteger()',
        'quantity("40G").asApproximateFloat() > 10.5',
        'quantity("100m").asApproximateFloat() == 0.1',
        'quantity("1.5").asApproximateFloat() == 1.5',
        # The smallest int64 is its own negative, where upstream subtracts int64s; with big decimals it is not.
        'quantity("0").sub(-9223372036854775808).isLessThan(quantity("0"))',
        'quantity("1").sub(-9223372036854775808).isLessThan(quantity("0"))',
        'quantity("1k").sub(-9223372036854775808).isLessThan(quantity("0"))',
        'quantity("9223372036854775807").sub(-9223372036854775808).isGreaterThan(quantity("1Gi"))',
        'quantity("-1").sub(-9223372036854775808).isGreaterThan(quantity("1Gi"))',
        'quantity("0.5").sub(-9223372036854775808).isGreaterThan(quantity("1Gi"))',
    ],
)
def test_quantities_are_numbers(expression):
    assert holds(expression)


@pytest.mark.parametrize(
    "expression",
    [
        'quantity("200K") == quantity("1")',
        'quantity("") == quantity("1")',
        'quantity("1.5").asInteger() == 1',
        'quantity("1").sign() == 1',
    ],
)
def test_value_that_is_refused_is_an_error(expression):
    with pytest.raises((CompileError, EvaluationError)):
        holds(expression)
