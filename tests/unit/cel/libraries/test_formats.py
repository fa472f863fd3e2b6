import pytest

from podium.cel import CompileError, EvaluationError
from tests.unit.cel.devices import holds


@pytest.mark.parametrize(
    "expression",
    [
        '!format.dns1123Label().validate("a-b").hasValue()',
        'format.dns1123Label().validate("A").hasValue()',
        'format.dns1123Label().validate("a.b").hasValue()',
        '!format.dns1123Subdomain().validate("a.b").hasValue()',
        '!format.dns1123LabelPrefix().validate("a-").hasValue()',
        'format.dns1123Label().validate("a-").hasValue()',
        '!format.qualifiedName().validate("a.b/C_d").hasValue()',
        'format.qualifiedName().validate("a/b/c").hasValue()',
        'format.qualifiedName().validate("/c").hasValue()',
        '!format.labelValue().validate("").hasValue()',
        '!format.labelValue().validate("A_b").hasValue()',
        'format.labelValue().validate("-a").hasValue()',
        '!format.uri().validate("https://a").hasValue()',
        'format.uri().validate("a").hasValue()',
        '!format.uuid().validate("d9428888-122b-11e1-b85c-61cd3cbb3210").hasValue()',
        '!format.date().validate("2026-01-01").hasValue()',
        'format.date().validate("2026-02-30").hasValue()',
        '!format.datetime().validate("2026-01-01T00:00:00Z").hasValue()',
        '!format.byte().validate("aGVsbG8=").hasValue()',
        'format.byte().validate("aGVsbG8").hasValue()',
        'format.dns1035Label().validate("1a").hasValue()',
        'format.named("dns1123Label").hasValue()',
        '!format.named("nosuch").hasValue()',
        'format.dns1123Label() == format.named("dns1123Label").value()',
    ],
)
def test_strings_have_formats(expression):
    assert holds(expression)


@pytest.mark.parametrize(
    "expression",
    [
        'format.nosuch().validate("a").hasValue()',
    ],
)
def test_value_that_is_refused_is_an_error(expression):
    with pytest.raises((CompileError, EvaluationError)):
        holds(expression)
