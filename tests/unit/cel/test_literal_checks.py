import pytest

from podium.cel import CompileError
from podium.devices.selectors import compile_selector
from tests.unit.cel.devices import ATTRIBUTES, holds


@pytest.mark.parametrize(
    "expression",
    [
        "[1, 'a'] == [1]",
        "[1, 2u].size() == 2",
        "{'a': 1, 'b': 'c'} == {}",
        "{1: 1, 'a': 1} == {}",
        "[null, 1] == []",
        f"[{ATTRIBUTES}.index, 3].max() == 3",
        "false && 'a'.matches('[')",
        "false && matches('a', '(')",
        "false && matches('+', 'a')",
        "false && 'a'.find('*') == ''",
        "false && 'a'.findAll('a**') == []",
        "false && duration('x') == duration('1h')",
        "false && timestamp('x') == timestamp(0)",
        "'%d'.format(['a']) == ''",
        "'%s'.format([]) == ''",
        "'%s'.format([1, 2]) == ''",
        "'%y'.format([1]) == ''",
        "'%s'.format([[quantity('1')]]) == ''",
        "'%'.format([1]) == ''",
        "'%.99999f'.format([1.0]) == ''",
    ],
)
def test_literal_that_cannot_be_right_is_a_compile_error(expression):
    with pytest.raises(CompileError):
        compile_selector(expression)


def test_format_takes_values_of_different_types():
    assert holds("'%s-%d-%s'.format(['a', 3, [1, 'b']]) == 'a-3-[1, \"b\"]'")


def test_optional_elements_count_as_what_they_hold():
    assert holds("[1, ?optional.of(2), ?optional.none()] == [1, 2]")
    assert holds("{'a': 1, ?'b': optional.none()} == {'a': 1}")
