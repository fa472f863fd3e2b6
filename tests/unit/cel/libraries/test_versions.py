import pytest

from podium.cel import CompileError, EvaluationError
from tests.unit.cel.devices import holds


@pytest.mark.parametrize(
    "expression",
    [
        'semver("1.2.3").major() == 1',
        'semver("1.2.3").minor() == 2',
        'semver("1.2.3").patch() == 3',
        'semver("1.2.3") == semver("1.2.3+build")',
        'semver("1.0.0-alpha").isLessThan(semver("1.0.0-alpha.1"))',
        'semver("1.0.0-1").isLessThan(semver("1.0.0-a"))',
        'semver("1.0.0-a").isLessThan(semver("1.0.0"))',
        'semver("1.10.0").isGreaterThan(semver("1.9.0"))',
        'semver("1.0.0").compareTo(semver("1.0.1")) == -1',
        'semver("v1.2", true) == semver("1.2.0")',
        'semver("01.02.3", true) == semver("1.2.3")',
        'isSemver("1.0.0")',
        '!isSemver("1.0")',
        'isSemver("1.0", true)',
        '!isSemver("v1.0.0")',
        '!isSemver("01.0.0")',
        'isSemver("1.0.0-a.b+c.d")',
        '!isSemver("1.0.0-")',
        '!isSemver("1.0.0-01")',
        '!isSemver("1.0.0+")',
        '!isSemver("1.0.0-é")',
        'isSemver("1", true)',
    ],
)
def test_versions_are_ordered(expression):
    assert holds(expression)


@pytest.mark.parametrize(
    "expression",
    [
        'semver("1.2") == semver("1.2.0")',
        'semver("one") == semver("1.2.0")',
        'semver("1.2-a", true) == semver("1.2.0")',
        'semver("") == semver("1.2.0")',
        'semver("18446744073709551616.0.0").major() > 0',
    ],
)
def test_value_that_is_refused_is_an_error(expression):
    with pytest.raises((CompileError, EvaluationError)):
        holds(expression)
