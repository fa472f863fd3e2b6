"""Addresses that a server listens on. One that can never be listened on is a usage error, before anything begins."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from typing import Any, Final

import click

PORT_MAX: Final = 65535


def address(_: click.Context, parameter: click.Parameter, text: str) -> tuple[str, int] | None:
    """Split an option's address into host and port; return None for an empty address."""
    if not text:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > PORT_MAX:
        raise click.BadParameter(f"{text!r} does not end in a colon and a port from 0 to {PORT_MAX}", param=parameter)
    host = host.strip("[]")
    if not _can_be_resolved(host):
        problem = f"{host!r} is neither an IP address nor a name that can be resolved here"
        raise click.BadParameter(problem, param=parameter)
    return host, int(port)


def ip_address(_: click.Context, parameter: click.Parameter, text: str) -> str:
    """Return an option's IP address in its usual form."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not an IP address", param=parameter) from None


def endpoint_options(health_default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the options of the addresses for probes and metrics to a command with both."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for name, parameter, default, pages in (
            ("--metrics-bind-address", "metrics_address", ":8080", "/metrics"),
            ("--health-probe-bind-address", "health_address", health_default, "/healthz, /livez and /readyz"),
        ):
            command = click.option(
                name,
                parameter,
                default=default,
                show_default=True,
                callback=address,
                help=f'The address of {pages}; "" disables it.',
            )(command)
        return command

    return add


def _can_be_resolved(host: str) -> bool:
    """Report whether a listener could find the address of this host; "" stands for all addresses."""
    try:
        socket.getaddrinfo(host or None, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, ValueError):
        return False
    return True
