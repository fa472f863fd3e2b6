"""Parse the text of literals."""

from __future__ import annotations

import re

from podium.cel.values import INT_MAX, INT_MIN, UINT_MAX, UInt

_ESCAPE = re.compile(r"\\(?:([0-3][0-7][0-7])|[xX](..)|u(....)|U(........)|(.))", re.DOTALL)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_CODE_POINT_MAX = 0x10FFFF
_INT_DIGITS_MAX = 20


class LiteralError(Exception):
    """The literal is not valid."""


def read_int(text: str) -> int:
    """Parse a literal such as `12` or `-0x1F`. Raises: LiteralError."""
    number = _integer(text)
    if not INT_MIN <= number <= INT_MAX:
        raise LiteralError("invalid int literal")
    return number


def read_uint(text: str) -> UInt:
    """Parse a literal such as `12u`. Raises: LiteralError."""
    number = _integer(text[:-1])
    if number > UINT_MAX:
        raise LiteralError("invalid uint literal")
    return UInt(number)


def _integer(text: str) -> int:
    if len(text.lstrip("-0")) > _INT_DIGITS_MAX:
        raise LiteralError("the number has too many digits")
    return int(text, 16 if "x" in text else 10)


def read_float(text: str) -> float:
    """Parse a literal such as `1.5e3`. Raises: LiteralError."""
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise LiteralError("invalid double literal")
    return number


def read_string(text: str) -> str:
    """Parse a string literal with any kind of quotes. Raises: LiteralError."""
    body, raw = _body(text)
    return body if raw or "\\" not in body else _ESCAPE.sub(_character, body)


def read_bytes(text: str) -> bytes:
    """Parse a bytes literal. The result is UTF-8, except that octal and hex escapes are single bytes.

    Raises: LiteralError.
    """
    body, raw = _body(text[1:])
    if raw:
        return body.encode()
    parts, end = bytearray(), 0
    for match in _ESCAPE.finditer(body):
        parts += body[end : match.start()].encode()
        octal, byte, short, long, _ = match.groups()
        if short or long:
            raise LiteralError("bytes cannot have unicode escapes")
        parts += bytes([_code(octal, byte)]) if octal or byte else _character(match).encode()
        end = match.end()
    return bytes(parts + body[end:].encode())


def _body(text: str) -> tuple[str, bool]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    quote = 3 if len(text) >= 6 and text.startswith(('"""', "'''")) else 1
    return text[quote:-quote], raw


def _character(match: re.Match[str]) -> str:
    octal, byte, short, long, simple = match.groups()
    if simple:
        return _SIMPLE.get(simple, simple)
    code = _code(octal, byte or short or long)
    if code > _CODE_POINT_MAX or 0xD800 <= code <= 0xDFFF:
        raise LiteralError("invalid unicode code point")
    return chr(code)


def _code(octal: str | None, digits: str | None) -> int:
    return int(octal, 8) if octal else int(digits or "", 16)
