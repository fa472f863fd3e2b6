"""A balancer between a client and a server that can lose its connections without telling anybody."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self


class Relay:
    """Passes bytes on both ways. Used as an asynchronous context manager.

    Attributes: `port`, where it listens; `accepted`, how many connections it has taken.
    """

    def __init__(self, to_port: int) -> None:
        self.port = 0
        self.accepted = 0
        self._to_port = to_port
        self._age = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def swallow(self) -> None:
        """Pass nothing on any more on the connections there are; the kernel goes on acknowledging what comes."""
        self._age += 1

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        age = self._age
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._to_port)
        self._writers |= {writer, server_writer}
        for source, sink in ((reader, server_writer), (server_reader, writer)):
            task = asyncio.get_running_loop().create_task(self._pass_on(source, sink, age))
            self._tasks.add(task)

    async def _pass_on(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, age: int) -> None:
        try:
            while content := await source.read(65536):
                if age == self._age:
                    sink.write(content)
                    await sink.drain()
        except OSError:
            pass
        if age == self._age:
            sink.close()
