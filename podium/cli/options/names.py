"""Names of objects in arguments: NAME or NAMESPACE/NAME."""

from __future__ import annotations

import click


def demand_name(text: str) -> str:
    """Return the name. Raises: click.UsageError: it is neither NAME nor NAMESPACE/NAME."""
    if text.count("/") > 1 or not all(text.split("/")):
        raise click.UsageError(f"{text!r} is not NAME or NAMESPACE/NAME")
    return text


def name_in(_: click.Context, __: click.Parameter, value: str) -> str:
    """Check the value of an option, as its callback."""
    return demand_name(value)
