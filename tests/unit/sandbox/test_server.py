import logging
from unittest.mock import Mock

import anyio
import pytest
from aiohttp import web

from podium.sandbox.faults import Faults
from podium.sandbox.server import ApiServer
from podium.sandbox.store import Store

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("path", ["/api/v1/pods?watch=1", "/api/v1/pods"])
async def test_a_client_that_is_gone_before_it_hears_anything_is_no_error(path, caplog):
    faults = Faults(Mock())
    faults.tear_response(verb="list")
    api = ApiServer(Store(), faults, token=None, bookmark_interval_s=10.0)
    server = web.Server(api.handle, access_log=None)
    connection = server()
    transport = Mock()
    connection.connection_made(transport)
    transport.is_closing.return_value = True
    with caplog.at_level(logging.INFO):
        connection.data_received(f"GET {path} HTTP/1.1\r\nHost: here\r\n\r\n".encode())
        await anyio.wait_all_tasks_blocked()
    transport.write.assert_not_called()
    transport.close.assert_called()
    assert caplog.records == []
