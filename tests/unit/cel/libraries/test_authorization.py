import pytest

from podium.cel import CompileError, EvaluationError
from tests.unit.cel.devices import holds


@pytest.mark.parametrize(
    "expression",
    [
        "type(1) == int",
    ],
)
def test_types_go_on_working(expression):
    assert holds(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "dyn(1).allowed()",
        'dyn("a").check("get").allowed()',
    ],
)
def test_value_that_is_refused_is_an_error(expression):
    with pytest.raises((CompileError, EvaluationError)):
        holds(expression)
