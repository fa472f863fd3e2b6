import pytest

from podium.cel import CompileError, EvaluationError
from tests.unit.cel.devices import holds


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(3) == [0, 1, 2]",
        "[1, 2, 3, 4].slice(1, 3) == [2, 3]",
        "[1, 2].reverse() == [2, 1]",
        "[[1], [2]].flatten() == [1, 2]",
        "[1].flatten(0) == [1]",
        "dyn([1, 2]).flatten().size() == 2",
        "[1, 1, 2].distinct() == [1, 2]",
        "[3, 1].sort() == [1, 3]",
        '["b", "a"].sort() == ["a", "b"]',
        "[1, 2].first().value() == 1",
        "[1, 2].last().value() == 2",
        "![].first().hasValue()",
        "[true, false].sort() == [false, true]",
        "[0.0 / 0.0].sort().size() == 1",
        "[1, 2].sortBy(x, 0.0 / 0.0) == [1, 2]",
        "[1, 2, 3].sum() == 6",
        "[1.5, 2.5].sum() == 4.0",
        "[1u].sum() == 1u",
        '[duration("1s")].sum() == duration("1s")',
        "[].sum() == 0",
        "[1, 3, 2].max() == 3",
        "[1, 3, 2].min() == 1",
        '["b", "a"].max() == "b"',
        "[1, 2].isSorted()",
        "![2, 1].isSorted()",
        "[].isSorted()",
        '["b", "a"].indexOf("a") == 1',
        "[1, 1, 2].lastIndexOf(1) == 1",
        "[1].indexOf(2) == -1",
        "size([1]) == 1",
        "size({}) == 0",
        'size(b"ab") == 2',
        "sets.contains([1, 2], [1])",
        "sets.equivalent([1, 2], [2, 1, 1])",
        "sets.intersects([1, 2], [2, 3])",
        "sets.contains([], [])",
        "!sets.contains([1], [2])",
    ],
)
def test_lists_are_worked_on(expression):
    assert holds(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "[1, 2].slice(1, 3) == []",
        "[1].slice(-1, 1) == []",
        "[1].slice(1, 0) == []",
        "[1].flatten(-1) == []",
        "[[]].map(x, x.max()) == [1]",
        '[dyn(1), dyn("a")].sort() == []',
        '[dyn(quantity("1"))].max() == 1',
        "[9223372036854775807, 1].sum() == 0",
    ],
)
def test_value_that_is_refused_is_an_error(expression):
    with pytest.raises((CompileError, EvaluationError)):
        holds(expression)
