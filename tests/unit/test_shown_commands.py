"""Every `podium …` that a document shows is a command with options that there are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from podium.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```.*?\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINE = re.compile(r"\s*(?:\$ )?(?:kubectl )?podium ([a-z].*)")
INLINE = re.compile(r"`(?:kubectl )?podium ([a-z][^`]*)`")


def shown_in(text: str) -> Iterator[str]:
    """What follows `podium` in the commands of a text: lines of its blocks, and code within its sentences."""
    for block in BLOCK.findall(text):
        matches = map(LINE.match, block.replace("\\\n", " ").splitlines())
        yield from (match[1] for match in matches if match is not None)
    yield from (" ".join(command.split()) for command in INLINE.findall(BLOCK.sub("", text)))


def understood(words: str) -> click.Context:
    """Parse a command up to the first sign that only a shell reads. Raises: click.UsageError."""
    lexer = shlex.shlex(words, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    arguments: list[str] = []
    for word in lexer:
        if set(word) <= set("();<>|&"):
            break
        arguments.append(word)
    command: click.Command = main
    context = click.Context(main, info_name="podium")
    while True:
        _, arguments, _ = command.make_parser(context).parse_args(arguments)
        if not isinstance(command, click.Group) or not arguments:
            return context
        name, *arguments = arguments
        below = command.get_command(context, name)
        if below is None:
            raise click.UsageError(f"no such command: {name}")
        command, context = below, click.Context(below, info_name=name, parent=context)


def fault(words: str) -> str:
    """Why a command is not understood; "" if it is."""
    try:
        understood(words)
    except click.UsageError as error:
        # In a sentence an option may be named without a value.
        is_named = isinstance(error, click.BadOptionUsage) and words.endswith(error.option_name)
        return "" if is_named else f"podium {words}: {error.format_message()}"
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_shown_is_understood(page: Path) -> None:
    assert list(filter(None, map(fault, shown_in(page.read_text())))) == []


def test_commands_are_found_in_blocks_and_sentences() -> None:
    text = (
        "Run `podium why web\n-n shop`.\n\n```console\n$ podium config check \\\n    a.yaml | less\npodium 0.1.0\n```\n"
    )
    assert list(shown_in(text)) == ["config check      a.yaml | less", "why web -n shop"]


@pytest.mark.parametrize("words", ["wy web", "why web --no-such", "config chek a.yaml"])
def test_what_there_is_not_is_noticed(words: str) -> None:
    assert fault(words).startswith(f"podium {words}: ")


def test_the_shell_s_part_is_left_out() -> None:
    assert understood("config check a.yaml | less --no-such").command_path == "podium config check"
