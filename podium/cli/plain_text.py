"""Show untrusted text in tables: names and reasons act neither as markup nor as terminal commands."""

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
    """The text for a cell or a line, with line breaks and control characters escaped."""
    return Text(printable(text), style)


def heading(name: str) -> Text:
    """The name as the heading of a column, with a line for each word of a name in camel case."""
    return Text("\n").join(map(plain, _WORDS.split(name)))


class PlainConsole(Console):
    """A console that takes every string for data: it is shown as by `plain`, without markup, emoji or highlighting.

    podium's own layout and styles are values of rich. Whatever else comes to be shown is escaped at the very end.
    """

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        super().__init__(stderr=stderr, width=width, highlight=False)

    def render_str(self, text: str, *, style: str | Style = "", **how: Any) -> Text:
        """The text as data."""
        found = plain(text)
        found.style = style
        found.justify, found.overflow = how.get("justify"), how.get("overflow")
        return found

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of what is shown. Line breaks are the layout: `plain` has escaped those of data."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable_layout(segment.text), segment.style)


def console(*, stderr: bool = False) -> PlainConsole:
    """Standard output, or standard error, for text. Output to a pipe is not cut to the width of a terminal."""
    found = PlainConsole(stderr=stderr)
    return found if found.is_terminal else PlainConsole(stderr=stderr, width=_WIDTH_PIPED)
