"""Writes YAML that a terminal may show: unprintable characters are escaped, and the values keep their meaning."""

from __future__ import annotations

from typing import Any

import yaml


class _Dumper(yaml.SafeDumper):
    """Quotes texts with unprintable characters, since only quoted ones can have escapes."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _text)


def to_yaml(value: Any) -> str:
    """Write JSON values as a YAML document, with keys in their order.

    PyYAML quotes texts with unprintable characters, so these can be escaped; line breaks are the layout.
    """
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character == "\n" else _escape(character) for character in text
    )


def _escape(character: str) -> str:
    """Return the character's escape sequence within a quoted text."""
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
