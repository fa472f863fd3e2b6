"""The output of commands: lines, the option `--output` with its formats for programs, and errors of several lines.

Owns the rule that foreign text can neither control the terminal nor pass for podium's own lines. Callers print whole
lines, so a line break within one is part of the data, and is escaped. Tables go through `plain_text`, logs through
`telemetry`; all of them escape with `lib.printable`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

import click

from podium.cli.interrupts import printed_whole
from podium.lib.printable import printable, printable_json, printable_layout

TEXT: Final = "text"
JSON: Final = "json"
YAML: Final = "yaml"

_FORMER: Final = {"table": TEXT, "jsonl": JSON}
"""Former names of formats, which scripts may still use."""


class _Format(click.Choice[str]):
    """An output format, by its name or its former name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(_FORMER.get(value, value), param, ctx)


def output_option(default: str = TEXT) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the option. It is the same for all commands: text for people, JSON and YAML for programs."""
    return click.option(
        "-o",
        "--output",
        type=_Format([TEXT, JSON, YAML]),
        default=default,
        show_default=True,
        help="The output format: text for people, json or yaml for programs.",
    )


class LinesException(click.ClickException):
    """An error of several lines, each of which stays one line whatever it quotes."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = tuple(lines)
        super().__init__("\n".join(self.lines))


def lines_of(error: click.ClickException) -> tuple[str, ...]:
    """Return the lines of the error's message."""
    return error.lines if isinstance(error, LinesException) else (error.message,)


def say(line: str = "", *, err: bool = False, head: str = "", nl: bool = True) -> None:
    """Print one line, with unprintable characters escaped.

    Args:
        err: print to standard error.
        head: podium's own words before it, which may be styled.
        nl: end the line.
    """
    click.echo(head + printable(line), err=err, nl=nl)


def print_laid_out(text: str) -> None:
    """Print text that is laid out, such as a document: its line breaks belong to the layout, not to the data."""
    with printed_whole():
        click.echo(printable_layout(text), nl=False)


def print_value(value: Any, output: str) -> None:
    """Print a JSON value on one line, or as a YAML document."""
    if output == JSON:
        text = as_json(value) + b"\n"
    else:
        from podium.lib.yaml_writer import to_yaml

        text = to_yaml(value).encode()
    with printed_whole():
        click.echo(text, nl=False)


def write_json_line(value: Any) -> None:
    """Write one answer of many as a line."""
    sys.stdout.buffer.write(as_json(value) + b"\n")


def as_json(value: Any) -> bytes:
    """Encode a JSON value on one line, without the line's end and without unprintable characters."""
    import orjson

    try:
        return printable_json(orjson.dumps(value))
    except TypeError:
        # orjson refuses lone surrogates and integers beyond 64 bits, which a hostile file may contain.
        return json.dumps(value).encode()
