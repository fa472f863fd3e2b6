"""The answers that README and the pages in docs show: each is made again by what stands above it.

A fenced block shows an answer where it has lines that nobody types. It is made in one of three ways:

- a `console` block that begins with `$ podium …`: the command is run in the clone
- a `text` block below a `python` block: the Python of the page is run from the top, and this block prints that
- any block below the comment `<!-- answer: NAME -->`: a running podium is asked, in tests/e2e/test_shown_answers.py

`python -m tests.shown_answers` writes those of the first two kinds into their pages, and tests fail where a page says
something else, or shows an answer that is made in none of these ways.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from podium.cli.main import main
from tests.page_command import run_as_command

ROOT = Path(__file__).parents[1]

_BLOCK = re.compile(
    r"(?:^ *<!-- answer: (?P<name>[\w-]+) -->\n\s*)?"
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)
_COMMAND = re.compile(r"^\$ (?:.*\\\n)*.*$", re.MULTILINE)
_TYPED = {"python", "yaml", "json", "toml", "mermaid"}
"""Languages of blocks that readers write and programs read."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page.

    Attributes:
        page: the path of the page from the clone.
        line: where the block begins.
        language: what stands behind the fence.
        text: the lines within, without their indentation.
        name: names the producer of an answer by a running podium; "" for any other block.
    """

    page: str
    line: int
    language: str
    text: str
    name: str

    @property
    def place(self) -> str:
        """Where it is, as an editor opens it."""
        return f"{self.page}:{self.line}"

    @property
    def commands(self) -> list[str]:
        """The commands as they are typed, without the prompt and comments at the end of lines."""
        return [re.sub(r" +# .*", "", line[2:]) for line in _COMMAND.findall(self.text)]

    @property
    def output(self) -> str:
        """The lines that are printed, not typed."""
        return self.text if self.language != "console" else _COMMAND.sub("", self.text).lstrip("\n")

    @property
    def is_answer(self) -> bool:
        """It shows what a program prints."""
        return self.language not in _TYPED and bool(self.output.strip())

    @property
    def prints(self) -> bool:
        """It is Python that prints something at once, not in a function."""
        return self.language == "python" and re.search(r"^(?!def ).*\bprint\(", self.text, re.MULTILINE) is not None


def pages() -> list[str]:
    """All pages that users read, as paths from the clone."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [str(path.relative_to(ROOT)) for path in paths]


def blocks(page: str, text: str) -> list[Block]:
    """The blocks of that text of a page, in their order."""
    return [_block(page, text, fence) for fence in _BLOCK.finditer(text)]


def _block(page: str, text: str, fence: re.Match[str]) -> Block:
    content = re.sub(rf"^{fence['indent']}", "", fence["text"], flags=re.MULTILINE)
    line = text.count("\n", 0, fence.start("indent")) + 1
    return Block(page, line, fence["language"], content, fence["name"] or "")


def live_answers() -> dict[str, Block]:
    """The answers of running podiums by their names."""
    return {block.name: block for page in pages() for block in blocks(page, _text(page)) if block.name}


def faults(page: str, text: str) -> Iterator[str]:
    """The places of answers that nothing makes, and of Python that does not show what it prints."""
    last_block: Block | None = None
    for block in [*blocks(page, text), None]:
        shows_output = block is not None and block.language == "text"
        if last_block is not None and last_block.prints and not shows_output:
            yield f"{last_block.place}: it prints something, and no block of text below shows what"
        if block is not None and block.is_answer and not block.name and not _is_made_here(block, last_block):
            yield f"{block.place}: nothing makes this answer"
        last_block = block


def remake(page: str, text: str) -> str:
    """That text of a page with what its commands and its Python print now, run in the working directory."""
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    last_block: Block | None = None

    def answer(fence: re.Match[str]) -> str:
        nonlocal printed, last_block
        block, above = _block(page, text, fence), last_block
        last_block = block
        if block.language == "python":
            printed = _printed_by(block, names) if _shows_results(page, text) else ""
        elif not block.name and _is_made_here(block, above) and (block.is_answer or block.language == "text"):
            output = printed if block.language == "text" else _answer_to(block)
            return _with_output(fence, block, output)
        return fence[0]

    return _BLOCK.sub(answer, text)


def _is_made_here(block: Block, above: Block | None) -> bool:
    if block.language == "text":
        return above is not None and above.prints
    return block.language == "console" and len(block.commands) == 1 and block.text.startswith("$ podium ")


def _shows_results(page: str, text: str) -> bool:
    return any(block.prints for block in blocks(page, text))


def _printed_by(block: Block, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.text, block.place, "exec"), names)
    return printed.getvalue()


def _answer_to(block: Block) -> str:
    (command,) = block.commands
    result = CliRunner().invoke(main, shlex.split(command)[1:], catch_exceptions=False)
    assert result.exit_code == 0, f"{block.place}: {result.output}"
    return result.output


def _with_output(fence: re.Match[str], block: Block, output: str) -> str:
    command_lines = _COMMAND.findall(block.text) if block.language == "console" else []
    lines = [*"\n".join(command_lines).splitlines(), *(line.rstrip() for line in output.splitlines())]
    indented = "".join(f"{fence['indent']}{line}".rstrip() + "\n" for line in lines)
    start, end = fence.start("text") - fence.start(), fence.end("text") - fence.start()
    return fence[0][:start] + indented + fence[0][end:]


def _text(page: str) -> str:
    return (ROOT / page).read_text()


def write_all() -> None:
    """Write the answers into all pages."""
    os.chdir(ROOT)
    for path in pages():
        (ROOT / path).write_text(remake(path, _text(path)))


if __name__ == "__main__":
    run_as_command(write_all, __doc__)
