import json
from decimal import ROUND_CEILING, Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.objects.quantity import INT64_MAX, QuantityError, canonical_text, milli_value, parse, value

# Text, Value() and MilliValue() as k8s.io/apimachinery v0.36.2 answers, or `error`.
GOLDEN = [line.split("\t") for line in Path(__file__).with_name("quantity_golden.tsv").read_text("ascii").splitlines()]

SCALES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9}
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: row[0])
def test_a_quantity_is_worth_what_upstream_says(row: list[str]) -> None:
    text = json.loads(row[0])
    if row[1] == "error":
        with pytest.raises(QuantityError):
            parse(text)
    else:
        assert (value(text), milli_value(text)) == (int(row[1]), int(row[2]))


@pytest.mark.parametrize(("raw", "amount"), [(3, 3), (0, 0), (-2, -2), (1.5, 2), (2.0, 2), (1e21, 0), (1e-7, 1)])
def test_json_numbers_are_read_like_their_text(raw: float, amount: int) -> None:
    assert value(raw) == amount


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", '"" is not a quantity such as 500m, 1.5, 2Gi or 1e3'),
        ("1 Gi", '"1 Gi" is not a quantity such as 500m, 1.5, 2Gi or 1e3'),
        ("1GB", '"1GB" has the unknown suffix "GB"'),
        (".e-20", '".e-20" has no digits before its suffix'),
        ("1e99999", '"1e99999" has an exponent beyond 4096'),
        ("1" * 2000, "a quantity of 2000 characters is too long"),
    ],
)
def test_an_error_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("raw", [float("nan"), float("inf")])
def test_numbers_that_json_does_not_have_are_refused(raw: float) -> None:
    with pytest.raises(QuantityError):
        parse(raw)


def test_a_sum_is_rounded_once_at_its_end() -> None:
    assert (parse("100u") + parse("100u")).milli_value == 1
    assert (parse("0.5") + parse("0.5")).value == 1
    assert (parse("1500m") + parse("1Ki")).value == 1026


def test_a_sum_beyond_an_int64_becomes_a_big_decimal() -> None:
    total = parse("900000000000000000") + parse("900000000000000000")
    for _ in range(4):
        total += total
    assert total.wide
    assert total.unscaled > INT64_MAX


@given(st.text(alphabet="+-.0123456789eEinumkKMGTP x", max_size=30) | st.text(max_size=20))
def test_any_text_is_a_quantity_or_a_quantity_error(text: str) -> None:
    try:
        parse(text)
    except QuantityError:
        return
    assert -(2**63) <= value(text) < 2**63
    assert -(2**63) <= milli_value(text) < 2**63


decimals = st.decimals(min_value=0, max_value=10**9, places=9, allow_nan=False)


@given(decimals, st.sampled_from(sorted(SCALES)))
def test_a_decimal_quantity_is_its_number_rounded_up(number: Decimal, suffix: str) -> None:
    exact = number.scaleb(SCALES[suffix]).quantize(Decimal("1e-9"), ROUND_CEILING)
    assert value(f"{number:f}{suffix}") == exact.to_integral_value(ROUND_CEILING)


@given(st.integers(0, 2**20), st.sampled_from(sorted(BINARY)))
def test_a_binary_quantity_is_a_multiple_of_its_unit(number: int, suffix: str) -> None:
    assert value(f"{number}{suffix}") == number * BINARY[suffix]
    assert milli_value(f"{number}{suffix}") == number * BINARY[suffix] * 1000


@given(decimals, decimals)
def test_exact_values_are_ordered_and_added_as_numbers(first_amount: Decimal, right: Decimal) -> None:
    low, high = parse(f"{first_amount:f}"), parse(f"{right:f}")
    assert (high > low) == (right > first_amount)
    total = low + high
    assert Decimal(total.unscaled).scaleb(total.exponent) == first_amount + right


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("1", "1"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("0.5", "500m"),
        (1.5, "1500m"),
        (16, "16"),
        ("1000", "1k"),
        ("1024", "1024"),
        ("12e3", "12e3"),
        ("1e4", "10e3"),
        ("5e0", "5"),
        ("1e-3", "1e-3"),
        ("3u", "3u"),
        ("0", "0"),
        ("0Gi", "0"),
        ("4096Mi", "4Gi"),
        ("1536Mi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("1Ki", "1Ki"),
        ("0.5Ki", "512"),
        ("1.0001Ki", "1024102400u"),
        ("-2048Mi", "-2Gi"),
        ("2048Pi", "2Ei"),
    ],
)
def test_the_canonical_text_of_a_quantity(raw: str | float, text: str) -> None:
    assert canonical_text(raw) == text


@given(decimals, st.sampled_from(sorted(SCALES | BINARY)))
def test_the_canonical_text_is_the_same_quantity(number: Decimal, suffix: str) -> None:
    raw = f"{number:f}{suffix}"
    text = canonical_text(raw)
    assert not parse(text) > parse(raw)
    assert not parse(raw) > parse(text)
    assert canonical_text(text) == text
