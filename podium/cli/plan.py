"""`podium plan`: which nodes would Karpenter buy for the pods that wait?"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click
import orjson

from podium.cli import files
from podium.cli.command_errors import EXIT_FAILED
from podium.cli.interrupts import exit_130_at_sigint
from podium.cli.output import as_json, output_option
from podium.cli.progress import counting
from podium.objects.errors import FieldError
from podium.telemetry.log_text import printable


@click.command()
@click.option("--cases", required=True, metavar="FILE", help="Answer recorded cases, one JSON object per line.")
@output_option()
def command(cases: str, output: str) -> None:
    """Plan which nodes to buy for the pods that wait, as Karpenter does. Changes nothing in any cluster.

    \b
    podium plan --cases FILE

    This answers recorded cases, always in JSON: one JSON object per line, with the objects of a cluster, the time and
    the settings. A line without an id defines a catalogue of instance types for the lines after it.
    """  # noqa: D301
    del output
    click.get_current_context().with_resource(exit_130_at_sigint())
    if not _answer_cases(cases):
        raise SystemExit(EXIT_FAILED)


def _answer_cases(name: str) -> bool:
    """Print the answers in the order of the file, and return whether every line could be read."""
    from podium.provisioner.cases import Cases

    cases, out, answered, is_whole = Cases(), sys.stdout.buffer, 0, True
    with counting("answered") as advance:
        for number, line in files.lines(name):
            try:
                answer = cases.answer(_row(line))
            except FieldError as error:
                is_whole = False
                click.echo(printable(f"Error: {name}:{number}: {error}"), err=True)
                continue
            if answer is not None:
                out.write(as_json(answer) + b"\n")
                out.flush()
                answered += 1
                advance()
    if not answered and is_whole:
        raise click.ClickException(f"{name}: no line of it is a case that can be answered")
    return is_whole


def _row(line: bytes) -> Mapping[str, Any]:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise FieldError("not a case", str(error)) from error
    if not isinstance(row, dict):
        raise FieldError("not a case", "expected an object with named fields")
    return row
