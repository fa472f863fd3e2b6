"""Counts pods as they are bound, from outside the scheduler and for next to no CPU time.

A watch of metadata only, for measured pods that have a node: the API server tells of a pod when its binding is
written. The bytes are read in batches and never parsed; a JSON watch in Python would take CPU time from those who are
measured.
"""

from __future__ import annotations

import socket
import ssl
from types import TracebackType
from typing import Self
from urllib.parse import urlencode, urlsplit

from benchmarks.pods import MARK, NAMESPACE

_READ_BYTES = 1 << 18
_TIMEOUT_S = 10.0
_METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


class WatchError(Exception):
    """The API server refused the watch."""


class MarkerCount:
    """Counts a marker in a stream of bytes, wherever the stream is cut."""

    def __init__(self, marker: bytes) -> None:
        self._marker = marker
        self._rest = b""
        self.count = 0

    def feed(self, content: bytes) -> None:
        """The next bytes of the stream."""
        content = self._rest + content
        self.count += content.count(self._marker)
        # What is kept is shorter than the marker, so nothing is counted twice.
        self._rest = content[-(len(self._marker) - 1) :]


class BoundPods:
    """A watch that is open from the beginning to the end of the `with` statement."""

    def __init__(self, url: str, token: str, tls: ssl.SSLContext) -> None:
        self._address = urlsplit(url)
        self._token = token
        self._tls = tls

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def count(self) -> int:
        """Return how many measured pods have a node. Waits only for a new watch where the API server ended this one.

        It ends watches that it cannot serve fast enough. A new one begins with all pods that are bound already.
        """
        while True:
            try:
                content = self._socket.recv(_READ_BYTES)
            except ssl.SSLWantReadError:
                return self._added.count
            if content:
                self._added.feed(content)
            else:
                self._socket.close()
                self._open()

    def _open(self) -> None:
        host, port = self._address.hostname, self._address.port
        assert host is not None
        raw = socket.create_connection((host, port), timeout=_TIMEOUT_S)
        self._socket = self._tls.wrap_socket(raw, server_hostname=host)
        self._socket.sendall(self._request())
        answer = b""
        while b"\r\n\r\n" not in answer:
            content = self._socket.recv(_READ_BYTES)
            if not content:
                break
            answer += content
        head, _, body = answer.partition(b"\r\n\r\n")
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise WatchError(answer.decode(errors="replace"))
        self._socket.setblocking(False)
        self._added = MarkerCount(b'"type":"ADDED"')
        self._added.feed(body)

    def _request(self) -> bytes:
        query = {
            "watch": "true",
            "timeoutSeconds": "3600",
            "fieldSelector": "spec.nodeName!=",
            "labelSelector": ",".join(f"!{label}" for label in MARK),
            # What is there already comes first, and is no older than now: nothing of the run before.
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
        }
        # HTTP/1.0, so that the answer is not cut into chunks.
        lines = (
            f"GET /api/v1/namespaces/{NAMESPACE}/pods?{urlencode(query)} HTTP/1.0",
            f"Host: {self._address.netloc}",
            f"Authorization: Bearer {self._token}",
            f"Accept: {_METADATA_ONLY}",
        )
        return "\r\n".join((*lines, "", "")).encode()
