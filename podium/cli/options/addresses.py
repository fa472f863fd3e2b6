"""Addresses that a server listens on."""

from __future__ import annotations

from typing import Final

import click

PORT_MAX: Final = 65535


def address(_: click.Context, parameter: click.Parameter, text: str) -> tuple[str, int] | None:
    """Split an option's address into host and port; return None for an empty address."""
    if not text:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > PORT_MAX:
        raise click.BadParameter(f"{text!r} does not end in a colon and a port from 0 to {PORT_MAX}", param=parameter)
    return host.strip("[]"), int(port)
