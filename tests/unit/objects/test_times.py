import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.objects.times import format_micro_time, format_time, parse_time


@pytest.mark.parametrize(
    ("text", "epoch_s"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("2006-01-02T15:04:05Z", 1136214245.0),
        ("2006-01-02T15:04:05.25Z", 1136214245.25),
        ("2006-01-02T15:04:05.123456789Z", 1136214245.123456),
        ("2006-01-02T17:04:05+02:00", 1136214245.0),
        ("2006-01-02T08:04:05-07:00", 1136214245.0),
    ],
)
def test_timestamps_are_read(text: str, epoch_s: float) -> None:
    assert parse_time(text) == epoch_s


@pytest.mark.parametrize("text", ["", "2006-01-02", "2006-01-02T15:04:05", "2006-13-02T15:04:05Z", "yesterday"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the text of a wrong date is Python's own
        parse_time(text)


def test_a_time_has_whole_seconds() -> None:
    assert format_time(1136214245.9) == "2006-01-02T15:04:05Z"


def test_a_micro_time_always_has_six_digits() -> None:
    assert format_micro_time(1136214245.0) == "2006-01-02T15:04:05.000000Z"
    assert format_micro_time(1136214245.25) == "2006-01-02T15:04:05.250000Z"


@given(st.integers(0, 4_000_000_000_000))
def test_a_formatted_time_reads_back(milliseconds: int) -> None:
    epoch_s = milliseconds / 1000
    assert abs(parse_time(format_micro_time(epoch_s)) - epoch_s) < 1e-6
    assert parse_time(format_time(epoch_s)) == milliseconds // 1000
