"""Asks the process of `tests.warm_podium` for a podium: `warm_podium_client.py SOCKET ARGUMENT...` acts as `podium`.

Starting this costs little: nothing but the standard library is imported.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import sys
from collections.abc import Mapping, Sequence

_NUMBER = struct.Struct("i")


def ask(
    address: str, arguments: Sequence[str], descriptors: Sequence[int], environ: Mapping[str, str], *, is_leader: bool
) -> socket.socket:
    """Have podium run with these arguments and standard streams; return what its number and its exit code come through.

    Args:
        is_leader: whether it has a session of its own.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(address)
    request = json.dumps([list(arguments), dict(environ), os.getcwd(), is_leader])
    socket.send_fds(connection, [request.encode()], list(descriptors))
    return connection


def receive(connection: socket.socket) -> int:
    """Wait for its number, then for its exit code. Raises: ConnectionError: the process that forks has ended."""
    message = connection.recv(_NUMBER.size)
    if not message:
        raise ConnectionError("the process that forks podium has ended")
    return int(_NUMBER.unpack(message)[0])


def tell(connection: socket.socket, number: int) -> None:
    """Send such a number. Whoever asked may be gone."""
    with contextlib.suppress(ConnectionError):
        connection.send(_NUMBER.pack(number))


if __name__ == "__main__":
    answers = ask(sys.argv[1], sys.argv[2:], (0, 1, 2), os.environ, is_leader=False)
    receive(answers)
    exit_code = receive(answers)
    sys.exit(exit_code if exit_code >= 0 else 128 - exit_code)
