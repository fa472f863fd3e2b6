"""Show untrusted text on a terminal: names and reasons act neither as markup nor as terminal commands."""

from __future__ import annotations

from rich.text import Text

from podium.telemetry.log_text import printable


def plain(text: str, style: str = "") -> Text:
    """The text for a cell or a line, with line breaks and control characters escaped."""
    return Text(printable(text), style)
