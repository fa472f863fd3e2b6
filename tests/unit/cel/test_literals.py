import pytest

from podium.cel.literals import LiteralError, read_bytes, read_float, read_int, read_string, read_uint
from podium.cel.values import UInt


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"a"', "a"),
        ("'a\"b'", 'a"b'),
        (r'"\a\b\f\n\r\t\v\\\?\"\'\`"', "\a\b\f\n\r\t\v\\?\"'`"),
        (r'"\x41\u00e9\U0001F600\101"', "A\u00e9\U0001f600A"),
        (r"r'\d'", r"\d"),
        ("R'''a'b'''", "a'b"),
        ("'''a\r\nb\rc'''", "a\nb\nc"),
    ],
)
def test_string_is_read_with_its_escapes(text, value):
    assert read_string(text) == value


def test_bytes_have_escapes_of_single_bytes():
    assert read_bytes(r'b"\xff\377a\n"') == b"\xff\xffa\n"
    assert read_bytes("b'\u00e9'") == "\u00e9".encode()
    assert read_bytes(r"br'\x'") == rb"\x"
    with pytest.raises(LiteralError):
        read_bytes(r"b'\u00e9'")


@pytest.mark.parametrize("text", [r"'\ud800'", r"'\U00110000'"])
def test_code_point_that_does_not_exist_is_refused(text):
    with pytest.raises(LiteralError, match="invalid unicode code point"):
        read_string(text)


def test_numbers_have_their_ranges():
    assert (read_int("-9223372036854775808"), read_int("-0x10")) == (-(2**63), -16)
    assert read_uint("18446744073709551615u") == UInt(2**64 - 1)
    assert type(read_uint("0x1Fu")) is UInt
    assert read_float("-1.5e3") == -1500.0
    for read, text in ((read_int, "9223372036854775808"), (read_uint, "18446744073709551616u"), (read_float, "1e999")):
        with pytest.raises(LiteralError):
            read(text)
