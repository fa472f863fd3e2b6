from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.sandbox.quantities import canonical_text, parse_quantity, sum_text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("100m", Fraction(1, 10)),
        ("1.5", Fraction(3, 2)),
        (".5", Fraction(1, 2)),
        ("1Ki", 1024),
        ("2Gi", 2 * 1024**3),
        ("1E3", 1000),
        ("1E", 10**18),
        ("1e-3", Fraction(1, 1000)),
        ("5n", Fraction(5, 10**9)),
        ("-1k", -1000),
        (3, 3),
        (0.5, Fraction(1, 2)),
    ],
)
def test_a_quantity_is_a_number_with_a_suffix(text, value):
    assert parse_quantity(text) == value


@pytest.mark.parametrize("text", ["", "abc", "1 Gi", "1gi", "1KiB", "m", "1e", "--1", None, True, [], "１"])
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="quantities"):
        parse_quantity(text)


@given(st.integers(-(10**6), 10**6), st.sampled_from(["", "m", "k", "Ki", "M", "Mi", "G", "Gi"]))
def test_suffixes_scale_the_number(number, suffix):
    assert parse_quantity(f"{number}{suffix}") == number * parse_quantity(f"1{suffix}")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1000m", "1"),
        ("0.5", "500m"),
        ("2048Mi", "2Gi"),
        ("1000Mi", "1000Mi"),
        ("1.5Gi", "1536Mi"),
        ("1000", "1k"),
        ("1023", "1023"),
        ("0.5Ki", "512"),
        ("0", "0"),
        ("0.1n", "1n"),
        (3, "3"),
        ("1e3", "1e3"),
        ("1200E3", "1200e3"),
        ("5e0", "5"),
    ],
)
def test_a_quantity_is_written_as_the_api_server_writes_it(value, text):
    assert canonical_text(value) == text


def test_a_sum_has_the_form_of_its_first_part():
    assert sum_text(["1450Mi", "1450Mi"]) == "2900Mi"
    assert sum_text(["0", "1Gi", "1024Mi"]) == "2Gi"
    assert sum_text(["1900m", "1"]) == "2900m"
