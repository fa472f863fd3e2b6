"""Writes to etcd at a steady rate, for next to no CPU time: the machine is wanted for those who are measured."""

from __future__ import annotations

import http.client
import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from types import TracebackType
from typing import Final, Self

from benchmarks.etcd import EtcdError, key
from benchmarks.etcd_stream import put_message
from benchmarks.nodes import Json
from tests.control_plane.servers import ControlPlane

# What is due in so long is sent in one go: to wake for each object would cost more than the object, here and in etcd.
_TICK_S: Final = 0.05
_AT_ONCE_MAX: Final = 100
_TIMEOUT_S = 60.0
_STORED_FORM = "application/vnd.kubernetes.protobuf"


def puts_as_stored(plane: ControlPlane, items: Iterable[Json]) -> list[bytes]:
    """For each object, which the API server has already, the request to etcd that writes it once more.

    They hold the bytes that the API server would write itself, and not JSON, which costs it more to read.
    """
    host, _, port = plane.url.rpartition("/")[2].partition(":")
    connection = http.client.HTTPSConnection(host, int(port), timeout=_TIMEOUT_S, context=plane.ssl_context())
    headers = {"Authorization": f"Bearer {plane.admin_token}", "Accept": _STORED_FORM}
    messages = []
    try:
        for item in items:
            connection.request("GET", _path(item), headers=headers)
            answer = connection.getresponse()
            content = answer.read()
            if answer.status != http.HTTPStatus.OK:
                raise EtcdError(f"{_path(item)}: {answer.status} {answer.reason}")
            messages.append(put_message(key(item), content))
    finally:
        connection.close()
    return messages


def _path(item: Json) -> str:
    metadata = item["metadata"]
    namespace = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"/api/v1{namespace}/{item['kind'].lower()}s/{metadata['name']}"


class SteadyPuts:
    """Puts the messages in turn, over and over, at a rate, for as long as the block lasts; none if there are none.

    Args: `put` sends some of them and waits until they are answered, as `EtcdStream.put`.
    Raises: what it raises, at the end of the block.
    """

    def __init__(self, send: Callable[[Sequence[bytes]], None], messages: Sequence[bytes], per_s: float) -> None:
        self.made = 0
        self._put = send
        self._messages = itertools.cycle(messages) if messages else None
        self._per_s = per_s
        self._is_over = Event()
        self._thread = ThreadPoolExecutor(1, "puts")
        self._sending: Future[None] | None = None

    def __enter__(self) -> Self:
        if self._messages is not None:
            self._sending = self._thread.submit(self._run, self._messages)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.shutdown()
        if self._sending is not None:
            self._sending.result()

    def _run(self, messages: Iterable[bytes]) -> None:
        started_s = time.monotonic()
        while not self._is_over.wait(_TICK_S):
            due = int((time.monotonic() - started_s) * self._per_s) - self.made
            batch = list(itertools.islice(messages, min(due, _AT_ONCE_MAX)))
            self._put(batch)
            self.made += len(batch)
