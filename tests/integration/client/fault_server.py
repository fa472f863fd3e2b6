"""A small API server that can fail byte by byte.

Serves lists and watches of one resource from memory over plain sockets, so that a test can tear a line, reset a
connection or go silent exactly where it wants to.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

Object = dict[str, Any]

WORDS = "as the test asked"


@dataclass
class Request:
    """One request, as it came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    connection: Connection


Fault = Callable[[Request], Awaitable[None]]


class Connection:
    """The server's end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read_request(self) -> Request:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.split("\r\n")
        method, target, _ = first.split(" ")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
        body = await self._reader.readexactly(int(headers.get("content-length", 0)))
        url = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        return Request(method, url.path, query, headers, body, self)

    async def send(self, content: bytes) -> None:
        self._writer.write(content)
        await self._writer.drain()

    async def answer(self, code: int, body: bytes, headers: Iterable[tuple[str, str]] = ()) -> None:
        extra = "".join(f"{name}: {value}\r\n" for name, value in headers)
        head = f"HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{extra}\r\n"
        await self.send(head.encode() + body)

    async def start_chunks(self) -> None:
        await self.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")

    async def chunk(self, content: bytes) -> None:
        await self.send(b"%x\r\n%s\r\n" % (len(content), content))

    async def end_chunks(self) -> None:
        await self.send(b"0\r\n\r\n")

    def reset(self) -> None:
        self._writer.transport.abort()

    def close(self) -> None:
        self._writer.close()


class Silence(Exception):  # noqa: N818
    """Raised by a fault after which the connection stays open without another byte."""


@dataclass
class FaultServer:
    """Objects, their history, and the faults that the next requests run into."""

    path: str
    kind: str
    objects: dict[str, Object] = field(default_factory=dict)
    history: list[tuple[int, str, Object]] = field(default_factory=list)
    version: int = 100
    oldest: int = 0
    token: str | None = None
    requests: list[Request] = field(default_factory=list)
    list_faults: deque[Fault | None] = field(default_factory=deque)
    watch_faults: deque[Fault | None] = field(default_factory=deque)
    write_faults: deque[Fault | None] = field(default_factory=deque)
    page_items_max: int = 1000
    etcd: tuple[int, dict[str, Object]] | None = None
    """What single objects are read from, where it is not what lists and watches show."""
    port: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _watches: set[Connection] = field(default_factory=set)
    _snapshots: dict[str, list[Object]] = field(default_factory=dict)

    # ------------------------------------------------------------ the cluster

    def put(self, item: Object) -> None:
        """Create or change an object."""
        name = item["metadata"]["name"]
        self.version += 1
        item = {**item, "metadata": {"uid": f"uid-{name}", **item["metadata"], "resourceVersion": str(self.version)}}
        event = "MODIFIED" if name in self.objects else "ADDED"
        self.objects[name] = item
        self._record(event, item)

    def delete(self, name: str) -> None:
        self.version += 1
        item = self.objects.pop(name)
        item = {**item, "metadata": {**item["metadata"], "resourceVersion": str(self.version)}}
        self._record("DELETED", item)

    def compact(self) -> None:
        """Forget the history: older versions are answered with 410."""
        self.oldest = self.version
        self.history.clear()

    def drop_watches(self) -> None:
        """Reset the connections of all watches."""
        for connection in self._watches:
            connection.reset()

    @property
    def watches(self) -> list[Request]:
        """The watches asked for so far."""
        return [request for request in self.requests if "watch" in request.query]

    @property
    def lists(self) -> list[Request]:
        """The lists asked for so far, each page of one by itself, but for those that are asked for their version."""
        lists = [request for request in self.requests if request.path == self.path and "watch" not in request.query]
        return [request for request in lists if request.query.get("limit") != "1"]

    @property
    def reads(self) -> list[Request]:
        """The single objects asked for so far."""
        gets = [request for request in self.requests if request.method == "GET" and "watch" not in request.query]
        return [request for request in gets if request.path != self.path]

    def back_up(self) -> tuple[int, dict[str, Object]]:
        """Everything as it is now."""
        return self.version, dict(self.objects)

    def restore(self, backup: tuple[int, dict[str, Object]]) -> None:
        """Go back; watches from versions that are yet to come are silent until then, as an API server's are."""
        self.version, objects = backup
        self.objects = dict(objects)
        self.history = [entry for entry in self.history if entry[0] <= self.version]

    def _record(self, event: str, item: Object) -> None:
        self.history.append((self.version, event, item))
        self._changed.set()
        self._changed = asyncio.Event()

    # ------------------------------------------------------------ serving

    async def start(self, tls: ssl.SSLContext | None = None) -> asyncio.Server:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def stop(self, server: asyncio.Server) -> None:
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer)
        try:
            while True:
                request = await connection.read_request()
                self.requests.append(request)
                await self._answer(request)
        except Silence:
            await asyncio.Event().wait()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    async def _answer(self, request: Request) -> None:
        watching = "watch" in request.query
        faults = self.write_faults if request.method != "GET" else self.watch_faults if watching else self.list_faults
        fault = faults.popleft() if faults and request not in self.reads else None
        if fault is not None:
            await fault(request)
        elif self.token is not None and request.headers.get("authorization") != f"Bearer {self.token}":
            await status(401, "Unauthorized")(request)
        elif request.method != "GET":
            await request.connection.answer(201, b'{"kind":"Status","status":"Success"}')
        elif request.path.startswith(self.path.replace("/v1/", "/v1/namespaces/default/") + "/"):
            await self._read(request)
        elif request.path != self.path:
            await status(404, "NotFound")(request)
        elif watching:
            await self._watch(request)
        else:
            await self._list(request)

    async def _read(self, request: Request) -> None:
        item = (self.objects if self.etcd is None else self.etcd[1]).get(request.path.rpartition("/")[2])
        if item is None:
            await status(404, "NotFound")(request)
        else:
            await request.connection.answer(200, json.dumps({"kind": self.kind, "apiVersion": "v1", **item}).encode())

    async def _list(self, request: Request) -> None:
        token = request.query.get("continue")
        if token:
            version, _, start = token.partition(":")
            if int(version) < self.oldest:
                await status(410, "Expired")(request)
                return
        else:
            version, start = str(self.version), "0"
            self._snapshots[version] = list(self.objects.values())
        items = self._snapshots[version]
        limit = min(int(request.query.get("limit", len(items))), self.page_items_max)
        end = int(start) + limit
        metadata = {"resourceVersion": version}
        if end < len(items):
            metadata["continue"] = f"{version}:{end}"
        await request.connection.answer(200, page(f"{self.kind}List", metadata, items[int(start) : end]))

    async def _watch(self, request: Request) -> None:
        connection = request.connection
        cursor = int(request.query["resourceVersion"])
        if cursor < self.oldest:
            await status(410, "Expired")(request)
            return
        await connection.start_chunks()
        self._watches.add(connection)
        try:
            while True:
                for version, event, item in [entry for entry in self.history if entry[0] > cursor]:
                    await connection.chunk(line(event, item))
                    cursor = version
                await self._changed.wait()
        finally:
            self._watches.discard(connection)


# ---------------------------------------------------------------- bytes


def line(event: str, item: Object) -> bytes:
    """A watch event, spelled as the API server does."""
    return json.dumps({"type": event, "object": item}, separators=(",", ":")).encode() + b"\n"


def bookmark(version: int) -> bytes:
    return line("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version)}})


def page(kind: str, metadata: Object, items: Iterable[Object]) -> bytes:
    """A list, spelled as the API server does."""
    version = "apps/v1" if kind == "ReplicaSetList" else "v1"
    body = {"kind": kind, "apiVersion": version, "metadata": metadata, "items": list(items)}
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


def error_event(code: int, reason: str) -> bytes:
    return line("ERROR", {"kind": "Status", "metadata": {}, "code": code, "reason": reason, "message": WORDS})


# ---------------------------------------------------------------- faults


def status(code: int, reason: str, *, retry_after: str | None = None) -> Fault:
    """Answer with a Status."""

    async def fault(request: Request) -> None:
        body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": WORDS}
        headers = [("Retry-After", retry_after)] if retry_after else []
        await request.connection.answer(code, json.dumps(body).encode(), headers)

    return fault


def chunks(*contents: bytes, ending: str) -> Fault:
    """Answer with these chunks, then `end` regularly, `reset` the connection or keep `silence`."""

    async def fault(request: Request) -> None:
        await request.connection.start_chunks()
        for content in contents:
            await request.connection.chunk(content)
            # Lets each chunk go out as a segment of its own.
            await asyncio.sleep(0.005)
        if ending == "end":
            await request.connection.end_chunks()
        elif ending == "reset":
            request.connection.reset()
        else:
            raise Silence

    return fault


async def reset(request: Request) -> None:
    """Take the request and break the connection."""
    request.connection.reset()


async def silence(request: Request) -> None:
    """Take the request and say nothing."""
    raise Silence
