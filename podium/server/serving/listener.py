"""Listening sockets, and the error if there can be none."""

from __future__ import annotations

import os
import socket
from typing import Final

from podium.lib.error_text import UserFacingError

_PORT_MAX: Final = 65535


class ServingError(UserFacingError):
    """The port cannot be listened on; the text says why."""


def listen(host: str, port: int, *, may_be_name: bool = False, options: str = "") -> socket.socket:
    """Return a listening socket.

    Args:
        host: an IP address; "" listens on all addresses, and `::` accepts IPv4 too.
        may_be_name: whether the host may be a name, which is resolved.
        port: 0 for any that is free.
        options: the options of the command line that choose host and port, for the error.

    Raises: ServingError.
    """
    try:
        if not 0 <= port <= _PORT_MAX:
            raise ValueError(f"a port is at most {_PORT_MAX}")
        if not host:
            has_both = socket.has_dualstack_ipv6()
            family = socket.AF_INET6 if has_both else socket.AF_INET
            return socket.create_server(("", port), family=family, dualstack_ipv6=has_both)
        flags = socket.AI_PASSIVE if may_be_name else socket.AI_PASSIVE | socket.AI_NUMERICHOST
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)[0]
        return socket.create_server(address, family=family, dualstack_ipv6=host == "::")
    except (OSError, ValueError) as error:
        advice = f"; change {options}" if options else ""
        raise ServingError(f"cannot listen on {host or 'any address'} port {port}: {_reason(error)}{advice}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return str(getattr(error, "strerror", None) or error)
