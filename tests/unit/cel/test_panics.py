import pytest

from podium.cel import EvaluationError
from tests.unit.cel.devices import ATTRIBUTES, NEW, OLD, holds

FAILS = "[1].slice(0, 2)"
PANICS = f"{FAILS}.distinct()[0]"
NO_LIST = r"interface conversion: \*types\.Err is not traits\.Lister: missing method Add"


@pytest.mark.parametrize("rules", [OLD, NEW])
@pytest.mark.parametrize(
    "expression",
    [
        f"{FAILS}.sort() == [1] || true",
        f"true && ({FAILS}.sort() == [1] || true)",
        f"{FAILS}.distinct() == [1] || true",
        f"{FAILS}.sortBy(x, -x) == [1] || true",
        "[1].sortBy(x, x / 0) == [1] || true",
        f"({ATTRIBUTES}.healthy ? {FAILS} : [1]).sort() == [1] || true",
        f"[1, 2].exists(x, x == 2 || {FAILS}.sort() == [1])",
        f"[1].all(x, {FAILS}.sort() == [1] || true)",
        f"cel.bind(x, {FAILS}, x.sort() == [1] || true)",
        f"{ATTRIBUTES}.absent.distinct() == [1] || true",
    ],
)
def test_nothing_absorbs_the_panic_of_a_list_function_whose_list_fails(expression, rules):
    with pytest.raises(EvaluationError, match=f"internal error: {NO_LIST}"):
        holds(expression, rules)


@pytest.mark.parametrize(
    "expression",
    [
        f"1 / 0 + {PANICS} == 1 || true",
        f"1 / 0 == {PANICS} || true",
        f"1 / 0 != {PANICS} || true",
        f"1 / 0 in {FAILS}.distinct() || true",
        f"string(1 / 0).matches(string({PANICS})) || true",
    ],
)
def test_second_of_two_arguments_is_evaluated_though_the_first_fails(expression):
    with pytest.raises(EvaluationError, match=NO_LIST):
        holds(expression)


@pytest.mark.parametrize(
    ("argument", "name"),
    [
        ("1 / 0", r"\*types\.Err"),
        ('dyn("a")', r"types\.String"),
        ("dyn(1u)", r"types\.Uint"),
        ("dyn([1])", r"\*types\.baseList"),
    ],
)
def test_depth_that_is_no_int_panics(argument, name):
    with pytest.raises(EvaluationError, match=f"interface conversion: ref.Val is {name}, not types.Int"):
        holds(f"[[1]].slice(0, 2).flatten({argument}) == [1] || true")


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("1", r"types\.Int is not traits\.Lister: missing method Contains"),
        ("true", r"types\.Bool is not traits\.Lister: missing method Add"),
        ("{'a': 1}", r"\*types\.baseMap is not traits\.Lister: missing method Add"),
        ("device.attributes", r"cel\.mapper is not traits\.Lister: missing method Add"),
        ("semver('1.2.3')", r"cel\.Semver is not traits\.Lister: missing method Add"),
    ],
)
def test_distinct_of_what_is_no_list_panics(value, name):
    with pytest.raises(EvaluationError, match=f"internal error: interface conversion: {name}"):
        holds(f"dyn({value}).distinct() == [1] || true")


@pytest.mark.parametrize(
    "expression",
    [
        f"true || {FAILS}.sort() == [1]",
        f"{FAILS}.reverse() == [1] || true",
        f"{FAILS}.max() == 1 || {FAILS}.isSorted() || true",
        f"dyn({FAILS}).sort() == [1] || true",
        "dyn(1).flatten(1) == [1] || [[1]].flatten(-1) == [1] || true",
        f"[1 / 0, {PANICS}] == [1] || {FAILS}[{PANICS}] == 1 || true",
        f"'a'.substring(1 / 0, {PANICS}) == '' || true",
        f"(1 / 0 == 1 ? {FAILS}.distinct() : [1]) == [1] || true",
    ],
)
def test_other_failing_lists_are_absorbed(expression):
    assert holds(expression)
