import pytest

from podium.cel import CompileError, EvaluationError
from tests.unit.cel.devices import holds


@pytest.mark.parametrize(
    "expression",
    [
        '"héé".size() == 3',
        '"hé".charAt(1) == "é"',
        '"ab".charAt(2) == ""',
        '"abc".contains("b")',
        '"abc".startsWith("ab")',
        '"abcabc".indexOf("c") == 2',
        '"abcabc".indexOf("c", 3) == 5',
        '"abc".indexOf("a", 10) == -1',
        '"abcabc".lastIndexOf("a") == 3',
        '"abcabc".lastIndexOf("a", 2) == 0',
        '"abc".lastIndexOf("") == 3',
        '"x".lastIndexOf("x") == 0',
        '"ABé".lowerAscii() == "abé"',
        '"abé".upperAscii() == "ABé"',
        '" \\t a\\u00a0".trim() == "a"',
        '"abc".endsWith("bc")',
        '"aaa".replace("a", "b") == "bbb"',
        '"aaa".replace("a", "b", 2) == "bba"',
        '"ab".replace("", "-") == "-a-b-"',
        '"a".replace("a", "b", 0) == "a"',
        '"a,b,c".split(",") == ["a", "b", "c"]',
        '"a,b,c".split(",", 2) == ["a", "b,c"]',
        '"abc".split("") == ["a", "b", "c"]',
        '"a".split(",", 0) == []',
        '"abc".substring(1) == "bc"',
        '"abc".substring(1, 2) == "b"',
        '"abc".substring(3) == ""',
        '["a", "b"].join("/") == "a/b"',
        '["a", "b"].join() == "ab"',
        'strings.quote("a\\"b\\n") == "\\"a\\\\\\"b\\\\n\\""',
        '"abc".split("", 2) == ["a", "bc"]',
        '"ab".replace("", "-", 1) == "-ab"',
    ],
)
def test_strings_are_taken_apart(expression):
    assert holds(expression)


@pytest.mark.parametrize(
    "expression",
    [
        '"a".charAt(2) == ""',
        '"a".charAt(-1) == ""',
        '"a".substring(2) == ""',
        '"abc".substring(2, 1) == ""',
        '"abc".indexOf("a", -1) == 0',
        '[dyn(1)].join() == ""',
        '"abc".reverse() == "cba"',
    ],
)
def test_value_that_is_refused_is_an_error(expression):
    with pytest.raises((CompileError, EvaluationError)):
        holds(expression)
