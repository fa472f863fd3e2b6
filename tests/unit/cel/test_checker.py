import pytest

from podium.cel import CompileError
from podium.devices.selectors import compile_selector
from tests.unit.cel.devices import ATTRIBUTES, CAPACITY, holds


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("self.x == 1", "1:1: undeclared reference to 'self'"),
        ("nosuchfunction()", "1:15: undeclared reference to 'nosuchfunction'"),
        ("device.noSuchField", "1:7: undefined field 'noSuchField'"),
        ("device.driver == 1", r"1:15: found no matching overload for '_==_' applied to '\(string, int\)'"),
        ("2 in [1.0]", r"1:3: found no matching overload for '@in' applied to '\(int, list\(double\)\)'"),
        (f"{CAPACITY}.memory == '40Gi'", r"applied to '\(kubernetes.Quantity, string\)'"),
        (f"{CAPACITY}.memory > quantity('1')", "found no matching overload for '_>_'"),
        ('device["driver"] == "x"', r"'_\[_\]' applied to '\(kubernetes.DRADevice, string\)'"),
        (f'{ATTRIBUTES}.model.reverse() == "001a"', r"applied to '\(list\(dyn\), string\)'"),
        ("1 + 1", "must evaluate to bool or the unknown type, not int"),
        ("1 && true", "expected type 'bool' but found 'int'"),
        ("1.all(x, true)", "cannot be range of a comprehension"),
        ("1 == 1 && 2 == 2 && optional.none().all(x, true)", r"of type 'optional_type\(_var3\)' cannot be range"),
        ("quantity('1').sign() == 1", "no matching overload"),
        ("math.greatest(1, 2) == 2", "undeclared reference to 'math'"),
        ("authorizer.path('/').check('get').allowed()", "undeclared reference to 'authorizer'"),
        ("type(device) == kubernetes.DRADevice", "undeclared reference to 'kubernetes'"),
        ("google.protobuf.Int64Value{value: 1} == 1", "not supported in device selectors"),
    ],
)
def test_wrong_type_is_a_compile_error(expression, problem):
    with pytest.raises(CompileError, match=problem):
        compile_selector(expression)


def test_attribute_may_be_the_answer():
    assert holds(f"{ATTRIBUTES}.healthy")


@pytest.mark.parametrize(
    "expression",
    [
        "type(1) == int && type([]) == list && type(null) == null_type && type(type(1)) == type",
        "type(timestamp(0)) == google.protobuf.Timestamp && type(ip('::1')) == net.IP",
        "type(optional.none()) == optional_type",
        "[[], [1]].size() == 2 && [{}, {'a': 1}].size() == 2",
        "[dyn(1), dyn('a')].size() == 2",
        "(true ? dyn(1) : 'a') == 1",
        "cel.bind(device, 1, device == 1)",
        "[1, 2].exists(int, int == 2)",
        "optional.none().orValue(1) == 1",
        "[].map(x, x + 1) == []",
    ],
)
def test_types_are_inferred(expression):
    assert holds(expression)
