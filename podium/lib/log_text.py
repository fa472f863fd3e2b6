"""Makes values harmless in a log: without passwords, not too long, and escaped as `printable` does it."""

from __future__ import annotations

import re
from typing import Any, Final

from podium.lib.printable import printable

REDACTED: Final = "[redacted]"

_USER_INFO = re.compile(r"://[^\s/@]*(?::[^\s@]*)?@")
_WITHOUT_USER_INFO: Final = f"://{REDACTED}@"
_PLAIN = frozenset({int, float, bool, type(None)})


def without_user_info(text: str) -> str:
    """Return the text with users and passwords removed from its URLs."""
    return _USER_INFO.sub(_WITHOUT_USER_INFO, text) if "://" in text and "@" in text else text


def printable_value(value: Any) -> Any:
    """Escape any value in a log entry; see `printable`."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, str):
        return printable(value)
    text = repr(value)
    return value if text.isprintable() else printable(text)


def without_middle(text: str, length_max: int) -> str:
    """Cut the middle out of too long a text: a traceback names the cause first and the exception last."""
    left_out = len(text) - length_max
    if left_out <= 0:
        return text
    half = length_max // 2
    return f"{text[:half]}\n... {left_out} characters left out ...\n{text[-half:]}"
