import pytest

from podium.cel import CompileError, EvaluationError
from tests.unit.cel.devices import holds


@pytest.mark.parametrize(
    "expression",
    [
        'string(-0.0) == "-0"',
        'string(1e21) == "1e+21"',
        'string(1.5e-7) == "1.5e-07"',
        'string(100000.0) == "100000"',
        'string(999999.5) == "999999.5"',
        'string(double("inf")) == "+Inf"',
        'string(double("-inf")) == "-Inf"',
        'string(double("nan")) == "NaN"',
        'string(1234567.0) == "1.234567e+06"',
        'double("1.") == 1.0',
        'double("-.5e1") == -5.0',
        'double("0X1P+1") == 2.0',
        'double("1_0") == 10.0',
    ],
)
def test_doubles_are_written_as_in_go(expression):
    assert holds(expression)


@pytest.mark.parametrize(
    "expression",
    [
        'double("0x1") == 1.0',
        'double("1e") == 1.0',
        'double("") == 0.0',
    ],
)
def test_value_that_is_refused_is_an_error(expression):
    with pytest.raises((CompileError, EvaluationError)):
        holds(expression)
