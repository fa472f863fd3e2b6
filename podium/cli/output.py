"""The option `--output` of every command that prints an answer, and the formats for programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import click

from podium.cli.interrupts import printed_whole

TEXT: Final = "text"
JSON: Final = "json"
YAML: Final = "yaml"

EXIT_FITS_NOWHERE: Final = 3
"""The exit status with `--exit-code`. Statuses 1 and 2 stand for errors."""

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


def print_value(value: Any, output: str) -> None:
    """Print a JSON value on one line, or as a YAML document."""
    if output == JSON:
        text = as_json(value) + b"\n"
    else:
        import yaml

        text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, encoding="utf-8")
    with printed_whole():
        click.echo(text, nl=False)


def as_json(value: Any) -> bytes:
    """A JSON value on one line, without the end of the line."""
    import orjson

    try:
        return orjson.dumps(value)
    except TypeError:
        # orjson refuses lone surrogates and integers beyond 64 bits, which a hostile file may contain.
        return json.dumps(value).encode()
