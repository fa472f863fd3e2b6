"""The option for the devices of an embedded API server's nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from podium.sandbox.device_drivers import DeviceKind


def devices_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--devices NAME=COUNT`, any number of times, as a tuple of `DeviceKind`."""
    return click.option("--devices", metavar="NAME=COUNT", multiple=True, callback=_parse, help=text)


def _parse(_: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> tuple[DeviceKind, ...]:
    """Parse the values. Raises: click.BadParameter."""
    if not texts:
        return ()
    from podium.sandbox.device_drivers import DeviceKind

    try:
        kinds = tuple(DeviceKind.parse(text) for text in texts)
    except ValueError as error:
        raise click.BadParameter(str(error), param=parameter) from error
    names = [kind.name for kind in kinds]
    for name in names:
        if names.count(name) > 1:
            raise click.BadParameter(f"{name} is given twice", param=parameter)
    return kinds
