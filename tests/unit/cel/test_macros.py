import pytest

from podium.cel import CompileError
from podium.cel.parser import parse
from podium.cel.syntax import UNUSED, Call, Comprehension, Ident, Select, walk


def test_macro_is_known_by_its_name_arguments_and_target():
    assert isinstance(parse("a.all(x, true)"), Comprehension)
    assert isinstance(parse("a.all(x)"), Call)
    assert isinstance(parse("all(a, x, true)"), Call)
    assert parse("has(a.b)") == Select(5, Ident(4, "a"), "b", test_only=True)


def test_binding_is_a_loop_over_nothing():
    tree = parse("cel.bind(x, 1, x + 1)")
    assert isinstance(tree, Comprehension)
    assert (tree.variable, tree.accumulator) == (UNUSED, "x")
    assert isinstance(parse("other.bind(x, 1, x + 1)"), Call)


def test_chain_of_optional_macros_grows_no_faster_than_its_text():
    short, long = (len(walk(parse("a" + ".optMap(x, x)" * count))) for count in (10, 100))
    assert long < 11 * short


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("has(a)", "invalid argument to has"),
        ("a.all(x.y, true)", "must be a simple name"),
        ("a.all(__result__, true)", "overwrites accumulator"),
        ("a.all(x, x, true)", "duplicate variable name: x"),
        ("cel.bind(1, 2, 3)", "must be simple identifiers"),
        ("a.optMap(1, 2)", "must be a simple identifier"),
        ("1.sortBy(x, x)", "sortBy can only be applied"),
    ],
)
def test_arguments_of_the_wrong_form_are_refused(text, problem):
    with pytest.raises(CompileError, match=problem):
        parse(text)
