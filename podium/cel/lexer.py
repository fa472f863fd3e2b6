"""The lexer. It uses one regular expression without backtracking, so its time is linear in the text."""

from __future__ import annotations

import re
from typing import NamedTuple

from podium.cel.errors import CompileError

_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_RAW = r'[rR](?:"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|"[^"\n\r]*"|\'[^\'\n\r]*\')'
_COOKED = (
    rf'"""(?:{_ESCAPE}|[^\\])*?"""|\'\'\'(?:{_ESCAPE}|[^\\])*?\'\'\''
    rf'|"(?:{_ESCAPE}|[^\\"\n\r])*"|\'(?:{_ESCAPE}|[^\\\'\n\r])*\''
)
_STRING = f"(?:{_RAW}|{_COOKED})"
_TOKEN = re.compile(
    rf"""(?P<space>(?:[\t \r\n\f]+|//[^\n]*)+)
    |(?P<bytes>[bB]{_STRING})
    |(?P<string>{_STRING})
    |(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<name>[a-zA-Z_][a-zA-Z0-9_]*)
    |(?P<quoted>`[a-zA-Z0-9_.\-/\ ]+`)
    |(?P<symbol>==|!=|<=|>=|&&|\|\||[\[\]{{}}().,\-!?:+*/%<>])""",
    re.VERBOSE,
)
_KEYWORDS = frozenset({"in", "true", "false", "null"})
END = "end of the expression"


class Token(NamedTuple):
    """A token. `kind` is the symbol or keyword itself, or the class of the token, such as name or string."""

    kind: str
    text: str
    position: int


def tokens(text: str) -> list[Token]:
    """Split an expression into tokens, followed by one for its end. Raises: CompileError."""
    result = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise CompileError(f"{place(text, position)}: unexpected character {text[position]!r}")
        kind, token = match.lastgroup or "", match.group()
        if kind == "symbol" or (kind == "name" and token in _KEYWORDS):
            kind = token
        if kind != "space":
            result.append(Token(kind, token, position))
        position = match.end()
    result.append(Token(END, "", position))
    return result


def place(text: str, position: int) -> str:
    """Return the line and the column of a position, both counted from 1."""
    line_start = text.rfind("\n", 0, position) + 1
    return f"{text.count(chr(10), 0, position) + 1}:{position - line_start + 1}"
