import pytest

from podium.cel import CompileError, EvaluationError
from tests.unit.cel.devices import holds


@pytest.mark.parametrize(
    "expression",
    [
        "optional.of(1).value() == 1",
        "!optional.none().hasValue()",
        "optional.of(1).hasValue()",
        "optional.none().orValue(2) == 2",
        "!optional.ofNonZeroValue(0).hasValue()",
        '!optional.ofNonZeroValue("").hasValue()',
        "optional.ofNonZeroValue([0]).hasValue()",
        "!optional.ofNonZeroValue(null).hasValue()",
        '!optional.ofNonZeroValue(duration("0")).hasValue()',
        "optional.ofNonZeroValue(true).value()",
        "optional.none().or(optional.of(1)).value() == 1",
        "optional.of(1).or(optional.of(2)).value() == 1",
        "optional.unwrap([optional.of(1), optional.none()]) == [1]",
        "[optional.of(1), optional.none()].unwrapOpt() == [1]",
    ],
)
def test_optional_values_are_used(expression):
    assert holds(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "optional.none().value() == 1",
        "dyn(1).value() == 1",
    ],
)
def test_value_that_is_refused_is_an_error(expression):
    with pytest.raises((CompileError, EvaluationError)):
        holds(expression)
