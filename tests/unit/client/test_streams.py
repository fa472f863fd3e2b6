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
from podium.objects.api_errors import ConnectionLost

pytestmark = pytest.mark.anyio


@dataclass
class Response:
    content: aiohttp.StreamReader
    headers: CIMultiDict[str] = field(default_factory=CIMultiDict)


async def test_a_connection_that_breaks_right_after_the_end_of_a_chunk_is_lost_and_no_mistake() -> None:
    loop = asyncio.get_running_loop()
    protocol = BaseProtocol(loop)
    protocol.connection_made(cast(asyncio.Transport, _Transport()))
    reader = aiohttp.StreamReader(protocol, 1000, loop=loop)
    pool = StreamPool(None, {})
    stream = Stream(cast(aiohttp.ClientResponse, Response(reader)), pool, lambda: None)
    reader.begin_http_chunk_receiving()
    reader.feed_data(b"line\n")
    assert await stream.read_lines() == [b"line"]
    reading = asyncio.create_task(stream.read_lines())
    await asyncio.sleep(0)
    # The end of the chunk wakes the reader without a byte, and before it runs the connection is reset.
    reader.end_http_chunk_receiving()
    reader.set_exception(aiohttp.ClientPayloadError("reset"))
    protocol.connection_lost(None)
    with pytest.raises(ConnectionLost):
        await reading
    await pool.close()


class _Transport:
    def __getattr__(self, name: str) -> Any:
        return lambda *_: None
