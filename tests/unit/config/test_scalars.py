import pytest

from podium.config.document import parse_document
from podium.config.field_errors import ErrorList
from podium.config.scalars import BASE64, BOOL, DURATION, FLOAT32, INT32, INT64, STRING
from podium.config.shapes import UNSET, Reading


def read(shape, text):
    reading = Reading()
    value = shape.read(parse_document(text, ErrorList()).root, "at", reading)
    return value, [error.text for error in reading.errors.errors]


@pytest.mark.parametrize(
    ("shape", "text", "value"),
    [
        (STRING, "'5'", "5"),
        (BOOL, "yes", True),
        (INT32, "-2147483648", -(2**31)),
        (INT64, "9223372036854775807", 2**63 - 1),
        (FLOAT32, "5000.5", 5000.5),
        (FLOAT32, "5", 5.0),
        (FLOAT32, "0.1", 0.1),
        (FLOAT32, "16777217", 16777216.0),
        (FLOAT32, "1.23456789", 1.2345679),
        (FLOAT32, "3.4028234663852886e38", 3.4028235e38),
        (DURATION, "1m30s", 90.0),
        (BASE64, "aGk=", "aGk="),
    ],
)
def test_value_of_the_right_type_is_taken(shape, text, value):
    assert read(shape, text) == (value, [])


@pytest.mark.parametrize(
    ("shape", "text", "error"),
    [
        (STRING, "5", "at: expected string, got 5"),
        (STRING, "[a]", "at: expected string, got a list"),
        (BOOL, "'yes'", 'at: expected bool, got "yes"'),
        (BOOL, "1", "at: expected bool, got 1"),
        (INT32, "five", 'at: expected int32, got "five"'),
        (INT32, "1.5", "at: expected int32, got 1.5"),
        (INT32, "true", "at: expected int32, got true"),
        (INT32, "2147483648", "at: expected int32, got 2147483648"),
        (INT64, "9223372036854775808", "at: expected int64, got 9223372036854775808"),
        (FLOAT32, "1.5e39", "at: expected number, got 1.5e+39"),
        (FLOAT32, "'5'", 'at: expected number, got "5"'),
        (DURATION, "15", 'at: expected a duration such as "1m30s", got 15'),
        (DURATION, "bad", 'at: expected a duration such as "1m30s", got "bad"'),
        (DURATION, "null", 'at: expected a duration such as "1m30s", got null'),
        (BASE64, "'%'", 'at: expected base64 text, got "%"'),
    ],
)
def test_value_of_the_wrong_type_is_named_with_its_path(shape, text, error):
    assert read(shape, text) == (UNSET, [error])


def test_numbers_and_durations_are_written_as_upstream_writes_them():
    assert FLOAT32.write(50.0) == 50
    assert FLOAT32.write(0.5) == 0.5
    assert DURATION.write(600.0) == "10m0s"
