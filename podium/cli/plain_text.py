"""Shows untrusted text in tables: names and reasons act neither as markup nor as terminal commands."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from podium.lib.printable import printable, printable_layout

_WIDTH_PIPED: Final = 200
_WORDS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def plain(text: str, style: str = "") -> Text:
    """Make a text for a cell or a line, with line breaks and control characters escaped."""
    return Text(printable(text), style)


def heading(name: str) -> Text:
    """Make a column heading of the name, with a line for each word of a name in camel case."""
    return Text("\n").join(map(plain, _WORDS.split(name)))


class PlainConsole(Console):
    """A console that treats every string as data: it shows it as `plain` does, without markup, emoji or highlighting.

    podium's own layout and styles are values of rich. All other text is escaped at the very end.
    """

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        super().__init__(stderr=stderr, width=width, highlight=False)

    def render_str(self, text: str, *, style: str | Style = "", **how: Any) -> Text:
        """Render the text as data."""
        escaped_text = plain(text)
        escaped_text.style = style
        escaped_text.justify, escaped_text.overflow = how.get("justify"), how.get("overflow")
        return escaped_text

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Escape the segments. Line breaks belong to the layout: `plain` has escaped those of data."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable_layout(segment.text), segment.style)


def console() -> PlainConsole:
    """Open standard output for text. Output to a pipe is not cut to the width of a terminal."""
    plain_console = PlainConsole()
    return plain_console if plain_console.is_terminal else PlainConsole(width=_WIDTH_PIPED)
