from podium.cel.types import ANY, DYN, INT, NULL, QUANTITY, STRING, list_of, map_of, optional_of, parameter
from podium.cel.unification import Substitutions, most_general


def test_variable_stands_for_what_it_is_first_given():
    types = Substitutions()
    variable = types.fresh()
    assert types.assignable(list_of(INT), list_of(variable))
    assert types.resolve(variable) == INT
    assert not types.assignable(STRING, variable)


def test_failed_attempt_leaves_no_trace():
    types = Substitutions()
    first, second = types.fresh(), types.fresh()
    assert not types.all_assignable((INT, STRING, INT), (first, second, STRING))
    assert types.resolve(first) == first
    assert types.assignable(STRING, first)


def test_variable_becomes_more_general():
    types = Substitutions()
    variable = types.fresh()
    assert types.assignable(INT, variable)
    assert types.assignable(DYN, variable)
    assert types.resolve(variable) == DYN


def test_variable_is_never_part_of_itself():
    types = Substitutions()
    variable = types.fresh()
    assert not types.assignable(list_of(variable), variable)


def test_null_stands_for_messages_and_optionals():
    types = Substitutions()
    assert types.assignable(NULL, QUANTITY)
    assert types.assignable(optional_of(INT), NULL)
    assert not types.assignable(NULL, INT)


def test_unbound_variables_are_replaced_at_the_end():
    types = Substitutions()
    assert types.resolve(map_of(types.fresh(), INT), unbound=DYN) == map_of(DYN, INT)


def test_signature_gets_variables_of_its_own():
    types = Substitutions()
    first = types.instantiate((parameter("A"), list_of(parameter("A"))))
    second = types.instantiate((parameter("A"),))
    assert first[1] == list_of(first[0])
    assert second[0] != first[0]


def test_dynamic_type_is_the_most_general():
    assert most_general(INT, DYN) == DYN
    assert most_general(list_of(INT), list_of(ANY)) == list_of(ANY)
