"""The help of every command and option is made of sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from podium.cli.main import main

END = re.compile(r"[.…)\]]$")


def commands_below(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield each command and group with its full name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{prefix}{name}", command
        if isinstance(command, click.Group):
            yield from commands_below(command, f"{prefix}{name} ")


COMMANDS = dict(commands_below(main))


@pytest.mark.parametrize("name", COMMANDS)
def test_command_says_what_it_does_in_a_sentence_that_begins_with_a_verb(name: str) -> None:
    summary = (COMMANDS[name].help or "").partition("\n\n")[0].strip()
    assert re.match(r"[A-Z][a-z]+ ", summary), name
    assert summary.endswith("."), name


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_explains_itself(name: str) -> None:
    for option in COMMANDS[name].params:
        if isinstance(option, click.Option) and not option.hidden:
            text = option.help or ""
            assert re.match(r"[A-Z]", text), (name, option.opts, text)
            assert END.search(text), (name, option.opts, text)
            assert len(text.split()) >= 3, (name, option.opts, text)
