"""The option `--output` of every command that answers something, and how values are printed for programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import click

TEXT: Final = "text"
JSON: Final = "json"
YAML: Final = "yaml"

EXIT_FITS_NOWHERE: Final = 3
"""Where `--exit-code` asks for it; 1 and 2 are for what went wrong."""

_FORMER: Final = {"table": TEXT, "jsonl": JSON}
"""What formats were called before; scripts may still say so."""


class _Format(click.Choice[str]):
    """One of the formats, by its name or a former one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(_FORMER.get(value, value), param, ctx)


def output_option(default: str = TEXT) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option, which is the same for all commands: text for people, JSON and YAML for programs."""
    return click.option(
        "-o",
        "--output",
        type=_Format([TEXT, JSON, YAML]),
        default=default,
        show_default=True,
        help="How to answer: text for people, json or yaml for programs.",
    )


def print_value(value: Any, output: str) -> None:
    """Print JSON values, in one line or as a YAML document."""
    if output == JSON:
        import orjson

        try:
            click.echo(orjson.dumps(value))
        except TypeError:
            # Half a character, or an integer beyond 64 bits: from a hostile file.
            click.echo(json.dumps(value))
        return
    import yaml

    click.echo(yaml.safe_dump(value, sort_keys=False, allow_unicode=True), nl=False)
