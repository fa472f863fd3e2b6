import pytest

from podium.cel.environment import functions_with
from podium.cel.errors import EvaluationError
from podium.cel.functions import Function, Overload, per_size
from podium.cel.types import INT, STRING, list_of, parameter
from podium.objects import quantity
from tests.unit.cel.devices import NEW, OLD

PLUS = Overload("add", "int.plus(int) -> int", lambda a, b: a + b)
JOIN = Overload("join", "plus(list(string), string) -> string", lambda a, b: b.join(a))


def test_signature_says_all():
    assert (PLUS.name, PLUS.is_member, PLUS.arguments, PLUS.result) == ("plus", True, (INT, INT), INT)
    assert (JOIN.is_member, JOIN.arguments) == (False, (list_of(STRING), STRING))
    spaced = Overload("first", "lists::first(list(A)) -> A", lambda value: value[0])
    assert (spaced.name, spaced.is_member, spaced.result) == ("lists.first", False, parameter("A"))


def test_overload_is_chosen_by_the_values():
    function = Function("plus", (PLUS, JOIN))
    assert function.for_values((1, 2)) is PLUS
    assert function.for_values((["a"], "b")) is JOIN
    assert function.for_values(([], "b")) is JOIN
    for values in ((True, 1), (1,), ([1], "b"), ("a", "b")):
        with pytest.raises(EvaluationError, match="no such overload: plus"):
            function.for_values(values)


def test_cost_grows_with_what_is_walked_through():
    assert per_size(0.1, 0)(("x" * 11, "y"), None) == 2
    assert per_size(0.1, 0, 1)(("x" * 11, "y" * 20), None) == 4
    assert per_size(0.1, 0)(("",), None) == 0


def test_overloads_have_names_of_their_own():
    for rules in (OLD, NEW):
        for function in functions_with(quantity.parse, rules).values():
            assert len(function.by_id) == len(function.overloads), function.name
