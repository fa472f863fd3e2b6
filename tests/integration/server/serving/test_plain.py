import aiohttp
import pytest
from aiohttp import web

from podium.server.serving.plain import refuse_other_sites, serve_plain

pytestmark = pytest.mark.anyio


async def show(_: web.Request) -> web.Response:
    return web.Response(text="secret")


@pytest.mark.parametrize(
    ("headers", "status"), [({}, 200), ({"Host": "evil.example"}, 403), ({"Origin": "http://evil.example"}, 403)]
)
async def test_pages_on_a_loopback_address_are_not_for_web_sites(headers, status):
    pages = {"/ui": show}
    async with (
        serve_plain("127.0.0.1", 0, pages, middlewares=[refuse_other_sites]) as port,
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/ui", headers=headers) as response,
    ):
        assert response.status == status
        assert ("secret" in await response.text()) == (status == 200)
