import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.config.duration import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15s", 15.0),
        ("1m30s", 90.0),
        ("1.5h", 5400.0),
        ("0", 0.0),
        ("-0", 0.0),
        ("+5s", 5.0),
        ("-1s", -1.0),
        (".5s", 0.5),
        ("5.s", 5.0),
        ("250ms", 0.25),
        ("3us", 3e-6),
        ("3µs", 3e-6),
        ("7ns", 7e-9),
        ("1s1s", 2.0),
        ("2562047h47m16.854775807s", 9223372036.854775807),
    ],
)
def test_go_duration_is_read_exactly(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "bad", "5", "s", ".s", "1 s", "1s ", "--1s", "1d", "-", "2562048h", "1.2.3s"])
def test_what_go_refuses_is_refused_in_gos_words(text):
    with pytest.raises(ValueError, match=r"^time: invalid duration "):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0s"),
        (600.0, "10m0s"),
        (3600.0, "1h0m0s"),
        (90.5, "1m30.5s"),
        (0.25, "250ms"),
        (1e-6, "1µs"),
        (1.5e-6, "1.5µs"),
        (9e-9, "9ns"),
        (-1.0, "-1s"),
        (0.9999999999, "1s"),
    ],
)
def test_seconds_are_written_as_go_writes_a_duration(seconds, text):
    assert format_duration(seconds) == text


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_a_written_duration_reads_as_the_same_seconds(nanoseconds):
    seconds = nanoseconds / 1e9
    assert parse_duration(format_duration(seconds)) == seconds
