import pytest

from podium.cel import CompileError, EvaluationError
from tests.unit.cel.devices import holds


@pytest.mark.parametrize(
    "expression",
    [
        '"abc".matches("b")',
        'matches("abc", "^a")',
        '!"abc".matches("^b")',
        '"a1b22".findAll("[0-9]+") == ["1", "22"]',
        '"a1b22".find("[0-9]+") == "1"',
        '"a".find("b") == ""',
        '"aaa".findAll("a", 2) == ["a", "a"]',
        '"aaa".findAll("a", 0) == []',
        '"a".findAll("b") == []',
        '["a", "b"].exists(p, "b".matches(p))',
    ],
)
def test_patterns_are_found(expression):
    assert holds(expression)


@pytest.mark.parametrize(
    "expression",
    [
        '"a".matches("[")',
        '["["].all(p, "a".matches(p))',
        '"a".find("(?=a)") == ""',
    ],
)
def test_value_that_is_refused_is_an_error(expression):
    with pytest.raises((CompileError, EvaluationError)):
        holds(expression)
