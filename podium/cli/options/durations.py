"""Durations on the command line, in Go's format."""

from __future__ import annotations

import click

from podium.config import parse_duration


def duration(_: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
    """Convert an option's text such as 15s or 1m30s to seconds. Raises: click.BadParameter."""
    if text is None:
        return None
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param=parameter) from error
    if seconds < 0:
        raise click.BadParameter(f"{text} is negative", param=parameter)
    return seconds
