"""Writes to etcd at a steady rate, for next to no CPU time: the machine is wanted for those who are measured."""

from __future__ import annotations

import http.client
import itertools
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from types import TracebackType
from typing import Self

from benchmarks.bound_pods import MarkerCount
from benchmarks.etcd import EtcdError, key, put_body
from benchmarks.nodes import Json
from tests.control_plane.servers import ControlPlane

# What is due in so long is sent in one go: to wake for each object would cost more than the object.
_TICK_S = 0.005
# Fewer than fill the buffers of a connection, whose answers are not read meanwhile.
_AT_ONCE_MAX = 100
_TIMEOUT_S = 20.0
_READ_BYTES = 1 << 16
_STORED_FORM = "application/vnd.kubernetes.protobuf"


def put_requests(plane: ControlPlane, items: Iterable[Json]) -> list[bytes]:
    """For each object, which the API server has already, the request to etcd that writes it once more.

    They hold the bytes that the API server would write itself, and not JSON, which costs it five times as much to read.
    """
    return put_requests_of(plane.etcd_address, _stored_forms(plane, items))


def put_requests_of(address: str, contents: Iterable[tuple[Json, bytes]]) -> list[bytes]:
    """For each object the request, to etcd at that `host:port`, that stores the bytes in its place."""
    head = f"POST /v3/kv/put HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n"
    bodies = [put_body(key(item), content) for item, content in contents]
    return [f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body for body in bodies]


def _stored_forms(plane: ControlPlane, items: Iterable[Json]) -> Iterator[tuple[Json, bytes]]:
    host, _, port = plane.url.rpartition("/")[2].partition(":")
    connection = http.client.HTTPSConnection(host, int(port), timeout=_TIMEOUT_S, context=plane.ssl_context())
    headers = {"Authorization": f"Bearer {plane.admin_token}", "Accept": _STORED_FORM}
    try:
        for item in items:
            connection.request("GET", _path(item), headers=headers)
            answer = connection.getresponse()
            content = answer.read()
            if answer.status != http.HTTPStatus.OK:
                raise EtcdError(f"{_path(item)}: {answer.status} {answer.reason}")
            yield item, content
    finally:
        connection.close()


def _path(item: Json) -> str:
    metadata = item["metadata"]
    namespace = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"/api/v1{namespace}/{item['kind'].lower()}s/{metadata['name']}"


class SteadyPuts:
    """Sends the requests in turn, over and over, at a rate, for as long as the block lasts; none if there are none.

    Raises:
        EtcdError: at the end of the block, if etcd has refused one.
    """

    def __init__(self, address: str, requests: Sequence[bytes], per_s: float) -> None:
        """Takes etcd's `host:port`."""
        self.made = 0
        host, _, port = address.partition(":")
        self._address = host, int(port)
        self._requests = itertools.cycle(requests)
        self._per_s = per_s if requests else 0.0
        self._is_over = Event()
        self._thread = ThreadPoolExecutor(1, "puts")
        self._sending: Future[None] | None = None

    def __enter__(self) -> Self:
        if self._per_s:
            self._sending = self._thread.submit(self._run)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.shutdown()
        if self._sending is not None:
            self._sending.result()

    def _run(self) -> None:
        answered = MarkerCount(b"HTTP/1.1 200 ")
        started_s = time.monotonic()
        with socket.create_connection(self._address, timeout=_TIMEOUT_S) as connection:
            while not self._is_over.wait(_TICK_S):
                due = int((time.monotonic() - started_s) * self._per_s) - self.made
                requests = list(itertools.islice(self._requests, min(due, _AT_ONCE_MAX)))
                connection.sendall(b"".join(requests))
                self.made += len(requests)
                while answered.count < self.made:
                    answered.feed(_received(connection))


def _received(connection: socket.socket) -> bytes:
    try:
        content = connection.recv(_READ_BYTES)
    except TimeoutError:
        content = b""
    if not content:
        # An answer of another code is not counted, so it ends here, too.
        raise EtcdError("etcd has not done what it was asked for steadily")
    return content
