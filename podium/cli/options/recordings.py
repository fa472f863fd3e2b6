"""The limit of a recording's size on the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from podium.objects.quantity import QuantityError, parse

RECORD_BYTES_MIN: Final = 1 << 20
"""Below this, hardly more than the first list of a cluster fits."""
_RECORD_BYTES_MAX: Final = 1 << 50


def _bytes(_: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        size = parse(text).value
    except QuantityError as error:
        raise click.BadParameter(str(error), param=parameter) from None
    if not RECORD_BYTES_MIN <= size <= _RECORD_BYTES_MAX:
        raise click.BadParameter(f"{text} is not from 1Mi to 1Pi", param=parameter)
    return size


def record_max_option(help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option `record_bytes`: bytes, or None for no limit."""
    return click.option("--record-max", "record_bytes", metavar="SIZE", callback=_bytes, help=help_text)
