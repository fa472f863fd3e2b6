"""Reading answers from aiohttp."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import aiohttp
import pytest
from aiohttp.base_protocol import BaseProtocol
from multidict import CIMultiDict

from podium.client.streams import Stream, StreamPool
from podium.objects.api_errors import ConnectionLost, NoResponse

pytestmark = pytest.mark.anyio


@dataclass
class Response:
    content: aiohttp.StreamReader
    headers: CIMultiDict[str] = field(default_factory=CIMultiDict)


async def reader_of() -> aiohttp.StreamReader:
    protocol = BaseProtocol(asyncio.get_running_loop())
    protocol.connection_made(cast(asyncio.Transport, _Transport()))
    return aiohttp.StreamReader(protocol, 1000, loop=asyncio.get_running_loop())


def stream_of(reader: aiohttp.StreamReader, pool: StreamPool, **limits: Any) -> Stream:
    return Stream(cast(aiohttp.ClientResponse, Response(reader)), pool, **limits)


async def test_a_silent_stream_is_given_up_and_its_pool_distrusted() -> None:
    reader, pool, reports = await reader_of(), StreamPool(None, {}), []
    stream = stream_of(reader, pool, on_silent=lambda: reports.append("silent"), idle_s_max=0.02)
    reader.feed_data(b"line\n")
    assert await stream.read_lines() == [b"line"]
    with pytest.raises(NoResponse, match="Timeout on reading data from socket"):
        await stream.read_lines()
    assert reports == ["silent"]
    await pool.close()


async def test_a_stream_whose_reader_is_busy_is_not_silent() -> None:
    reader, pool = await reader_of(), StreamPool(None, {})
    stream = stream_of(reader, pool, on_silent=lambda: None, idle_s_max=0.01)
    reader.feed_data(b"line\n")
    await asyncio.sleep(0.05)
    assert await stream.read_lines() == [b"line"]
    await pool.close()


async def test_a_stream_that_never_falls_silent_ends_at_its_deadline() -> None:
    reader, pool = await reader_of(), StreamPool(None, {})
    ends_s = asyncio.get_running_loop().time() + 0.03
    stream = stream_of(reader, pool, on_silent=lambda: None, idle_s_max=60.0, ends_s=ends_s)

    async def read_on() -> None:
        while True:
            reader.feed_data(b"line\n")
            await stream.read_lines()
            await asyncio.sleep(0)

    with pytest.raises(NoResponse, match="no answer in time"):
        await read_on()
    await pool.close()


async def test_a_connection_that_breaks_right_after_the_end_of_a_chunk_is_lost_and_no_mistake() -> None:
    reader, pool = await reader_of(), StreamPool(None, {})
    stream = stream_of(reader, pool, on_silent=lambda: None)
    reader.begin_http_chunk_receiving()
    reader.feed_data(b"line\n")
    assert await stream.read_lines() == [b"line"]
    reading = asyncio.create_task(stream.read_lines())
    await asyncio.sleep(0)
    # The end of the chunk wakes the reader without a byte, and before it runs the connection is reset.
    reader.end_http_chunk_receiving()
    reader.set_exception(aiohttp.ClientPayloadError("reset"))
    reader._protocol.connection_lost(None)
    with pytest.raises(ConnectionLost):
        await reading
    await pool.close()


class _Transport:
    def __getattr__(self, name: str) -> Any:
        return lambda *_: None
