"""The page docs/answers.md: commands that ask questions, each with what it prints.

`python -m tests.answers_page` runs them and writes the page; a test fails where the page says something else.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from click.testing import CliRunner

from podium.cli.main import main

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "answers.md"

_BLOCK = re.compile(r"^```console\n\$ podium (.*)\n(?:.*\n)*?```$", re.MULTILINE)


def page() -> str:
    """The page with what its commands print now. They are run where the clone is the working directory."""
    return _BLOCK.sub(_answered, PAGE.read_text())


def _answered(block: re.Match[str]) -> str:
    result = CliRunner().invoke(main, shlex.split(block[1]), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    lines = [line.rstrip() for line in result.output.splitlines()]
    return "\n".join(["```console", f"$ podium {block[1]}", *lines, "```"])


if __name__ == "__main__":
    PAGE.write_text(page())
