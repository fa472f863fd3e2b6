import pytest

from podium.cel import CompileError
from podium.devices.selectors import compile_selector
from tests.unit.cel.devices import holds


@pytest.mark.parametrize(
    "expression",
    [
        "uint('x') == 1u",
        "true || int('x') == 1",
        "duration(1) == duration('1s')",
        "{}[b'a'] == 1",
        "true || [1][?null].hasValue()",
    ],
)
def test_constant_that_cannot_be_computed_is_a_compile_error_wherever_it_is(expression):
    with pytest.raises(CompileError, match=r"program instantiation failed|no matching overload"):
        compile_selector(expression)


def test_nothing_is_in_an_empty_list_and_nothing_is_asked():
    assert not holds("(1 / 0) in []")


def test_constants_are_computed_once():
    assert holds("[1, int('2'), 3] == [1, 2, 3] && {'a': [duration('1h')]}['a'][0] == duration('60m')")
