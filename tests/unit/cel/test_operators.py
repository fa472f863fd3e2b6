import pytest

from podium.cel import EvaluationError
from tests.unit.cel.devices import ATTRIBUTES, holds

FAILS = "1 / 0 == 1"


@pytest.mark.parametrize("deciding", [True, False])
@pytest.mark.parametrize("order", ["{0} {2} {1}", "{1} {2} {0}", "{0} {2} {1} {2} {0}", "{1} {2} {0} {2} {0}"])
def test_deciding_term_absorbs_errors(order, deciding):
    term, operator = ("true", "||") if deciding else ("false", "&&")
    assert holds(order.format(f"({FAILS})", term, operator)) is deciding


@pytest.mark.parametrize(
    "expression", [f"{FAILS} || false", f"true && {FAILS}", f"{ATTRIBUTES}.index || false", f"true && true && {FAILS}"]
)
def test_error_remains_where_no_term_decides(expression):
    with pytest.raises(EvaluationError):
        holds(expression)


def test_only_the_chosen_branch_runs():
    assert holds(f"true ? true : {FAILS}")
    assert holds(f"optional.of(true).orValue({FAILS})")
    with pytest.raises(EvaluationError, match="no such overload"):
        holds(f"{ATTRIBUTES}.index ? true : false")


@pytest.mark.parametrize(
    "expression",
    [
        f"{ATTRIBUTES}.index == 3 && {ATTRIBUTES}.index == 3.0",
        f"{ATTRIBUTES}.index == 3u && {ATTRIBUTES}.index in [3.0]",
        f"{ATTRIBUTES}.index != '3' && !({ATTRIBUTES}.healthy == 1) && {ATTRIBUTES}.model == 'a100'",
        "dyn(1) != dyn('1') && dyn(null) == null && dyn(1) != null && 0.0 / 0.0 != 0.0 / 0.0",
        "[[1], [2]] == [[1], [2]] && {'a': 1} == {'a': 1} && {'a': 1} != {'b': 1}",
        "optional.of(1) == optional.of(1) && optional.of(1) != optional.none() && optional.none() == optional.none()",
        "dyn(9223372036854775807) == 9223372036854775807.0",
        "dyn(b'a') == b'a' && dyn(b'a') != 'a'",
        "semver('1.2.3') != dyn('1.2.3') && dyn('1.2.3') != semver('1.2.3')",
        "timestamp(0) == timestamp('1970-01-01T02:00:00+02:00')",
        "[quantity('1')] == [quantity('1000m')] && device == device",
    ],
)
def test_values_are_equal_by_what_they_are(expression):
    assert holds(expression)


@pytest.mark.parametrize(
    "expression",
    [f"{ATTRIBUTES}.driverVersion == '1.2.3'", "dyn(ip('::1')) == '::1'", "quantity('2') == quantity('1').add(1)"],
)
def test_equality_that_is_not_defined_is_an_error(expression):
    with pytest.raises(EvaluationError, match="no such overload"):
        holds(expression)


def test_sum_equals_a_quantity_on_its_right():
    assert holds("quantity('1').add(quantity('1')) == quantity('2')")
