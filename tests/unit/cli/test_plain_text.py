"""What a table shows is data, on a terminal as well."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest
from rich.table import Table
from rich.text import Text

from podium.cli.plain_text import PlainConsole, heading, plain

HOSTILE = "a\x1b[2J\x9b\u202e\n[bold]b[/bold] :smile: http://x"
SHOWN = r"a\x1b[2J\x9b\u202e\n[bold]b[/bold] :smile: http://x"


class _Terminal(PlainConsole):
    @property
    def is_terminal(self) -> bool:
        return True


def output(*parts: Any, console: type[PlainConsole] = _Terminal) -> str:
    """Return the printed text, without the styles that rich itself adds."""
    out = console(width=120)
    with out.capture() as captured:
        out.print(*parts)
    return re.sub(r"\x1b\[[\d;]*m", "", captured.get())


@pytest.mark.parametrize("console", [PlainConsole, _Terminal])
def test_strings_are_data(console: type[PlainConsole]) -> None:
    assert output(HOSTILE, console=console) == f"{SHOWN}\n"
    assert output(plain(HOSTILE, "bold"), console=console) == f"{SHOWN}\n"


def test_titles_and_cells_are_data() -> None:
    table = Table(title=HOSTILE, box=None)
    table.add_column(HOSTILE, justify="right", overflow="fold")
    table.add_row(HOSTILE, style="green")
    assert [line.strip() for line in output(table).splitlines()] == [SHOWN] * 3


def test_what_was_not_escaped_before_is_escaped_at_the_end() -> None:
    text = output(Text.assemble(("a\x1b[2J", "bold"), "\u202e\x9b"), Text("own\nlayout"))
    assert text.splitlines() == [r"a\x1b[2J\u202e\x9b own", "layout"]


def test_heading_has_a_line_for_each_word() -> None:
    assert heading("NodeResourcesFit").plain == "Node\nResources\nFit"
    assert heading("Bad\nName").plain == r"Bad\nName"


def test_traceback_of_a_defect_quotes_nothing_that_a_terminal_obeys() -> None:
    code = (
        "from podium.cli.main import main\n"
        "import podium.cli.version as version\n"
        "def fail(**_):\n    raise KeyError('\\x1b[2J\\u202e')\n"
        "version.command.callback = fail\n"
        "main(['version'])\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "KeyError" in result.stderr
    assert result.stderr.replace("\n", "").isprintable()
