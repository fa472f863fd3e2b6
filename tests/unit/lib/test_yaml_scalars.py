import pytest

from podium.lib.yaml_scalars import is_not_finite, resolve_plain


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("off", False),
        ("y", True),
        ("~", None),
        ("0777", 511),
        ("-0x1F", -31),
        ("0b101", 5),
        ("0o17", 15),
        ("1_000", 1000),
        ("089", 89),
        ("1e3", 1000),
        ("16.0", 16),
        ("1.5", 1.5),
        (".5", 0.5),
        ("12:30:45", "12:30:45"),
        ("2001-01-01", "2001-01-01"),
        ("5s", "5s"),
        ("+", "+"),
        ("0x", "0x"),
        ("1e999", "1e999"),
        ("<<", "<<"),
    ],
)
def test_plain_scalar_means_what_it_means_to_kube_scheduler(text, value):
    assert resolve_plain(text) == value
    assert type(resolve_plain(text)) is type(value)


@pytest.mark.parametrize(
    "text", ["9" * 5000, "0x" + "f" * 5000, "0" + "7" * 5000, "1e" + "1" * 5000, "1_" * 5000 + "1"]
)
def test_numbers_of_thousands_of_digits_are_text(text):
    assert resolve_plain(text) == text


@pytest.mark.parametrize("text", [".inf", "-.Inf", "+.INF", ".nan", ".NaN"])
def test_values_that_json_lacks_are_recognised(text):
    assert is_not_finite(text)
    assert resolve_plain(text) == text
