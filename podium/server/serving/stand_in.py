"""Answers probes from a thread while the event loop is stuck.

The loop accepts no connections then, so they wait in the listening socket: this thread accepts them instead. /livez,
/healthz and /readyz get a 500, so that the kubelet notices; everything else gets a 503. The reason is only logged,
since these paths are open to all.

Differs: kube-scheduler has no counterpart: its probes run in threads of their own.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Final

_LOOK_EVERY_S: Final = 0.25
_CONNECTION_S_MAX: Final = 3.0
_AT_ONCE_MAX: Final = 8
_HEAD_BYTES_MAX: Final = 8 * 1024
_PROBES: Final = ("livez", "healthz", "readyz")


class ProbeStandIn:
    """Accepts connections from a listening socket while the loop does not.

    Args:
        tls: returns the TLS settings in use now.
    """

    def __init__(self, listener: socket.socket, tls: Callable[[], ssl.SSLContext]) -> None:
        self._listener = listener
        self._tls = tls
        self._room = threading.BoundedSemaphore(_AT_ONCE_MAX)

    def answer_until(self, is_over: Callable[[], bool]) -> None:
        """Answer requests until `is_over` returns true or the listening socket is closed."""
        while not is_over():
            try:
                if not select.select([self._listener], [], [], _LOOK_EVERY_S)[0] or is_over():
                    continue
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                continue  # The loop has accepted the connection first.
            except (OSError, ValueError):
                return
            if not self._room.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=self._answer, args=(connection,), name="stand-in", daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        try:
            connection.settimeout(_CONNECTION_S_MAX)
            with self._tls().wrap_socket(connection, server_side=True) as secured:
                secured.sendall(_response(_head(secured)))
        except (OSError, ValueError):
            connection.close()
        finally:
            self._room.release()


def _head(connection: socket.socket) -> bytes:
    """Return the head of a request, or as much of it as was received."""
    head = b""
    while b"\r\n\r\n" not in head and len(head) < _HEAD_BYTES_MAX:
        received = connection.recv(4096)
        if not received:
            break
        head += received
    return head


def _response(head: bytes) -> bytes:
    """Return the response to a request with that head."""
    line = head.split(b"\r\n", 1)[0].split(b" ")
    path = line[1].split(b"?")[0].decode("latin-1") if len(line) > 1 else ""
    probe = path.split("/")[1] if path.startswith("/") else ""
    if probe in _PROBES:
        status, text = "500 Internal Server Error", f"[-]event-loop failed: reason withheld\n{probe} check failed\n"
    else:
        status, text = "503 Service Unavailable", "the event loop is stuck\n"
    fields = (
        f"HTTP/1.1 {status}",
        "Content-Type: text/plain; charset=utf-8",
        "Cache-Control: no-cache, private",
        "X-Content-Type-Options: nosniff",
        "Server: podium",
        "Connection: close",
        f"Content-Length: {len(text)}",
    )
    return ("\r\n".join(fields) + "\r\n\r\n" + text).encode("ascii")
