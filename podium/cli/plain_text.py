"""Text from outside on a terminal: names and reasons are shown as they are, and neither as markup nor as commands."""

from __future__ import annotations

from rich.text import Text

from podium.telemetry.log_text import printable


def plain(text: str, style: str = "") -> Text:
    """The text for a table's cell or a line; line breaks and control characters are escaped."""
    return Text(printable(text), style)
