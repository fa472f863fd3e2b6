"""Tokens of an OIDC provider, which is played here; exec plugins are in `test_exec_plugins` and `test_session`."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from podium.client.credentials import ConnectionConfigError, load
from podium.lib.clock import ManualClock
from podium.lib.endpoints import serving
from podium.server.serving import listen
from podium.server.serving.requests import RequestLog

pytestmark = [
    pytest.mark.anyio,
    # The library calls what aiohttp and Python have deprecated.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def id_token(expires_s: int, mark: str) -> str:
    """A token as the loader reads it: only the time of its expiry, at 2000-01-01 or in the distant future."""
    claims = base64.urlsafe_b64encode(json.dumps({"exp": expires_s}).encode()).decode().rstrip("=")
    return f"header.{claims}.{mark}"


EXPIRED, FRESH = id_token(946_684_800, "old"), id_token(4_102_444_800, "new")


@dataclass
class Provider:
    """A provider that gives one token for the refresh token `first`, and refuses every other."""

    url: str = ""
    tokens: list[str] = field(default_factory=list)

    async def discover(self, _: web.Request) -> web.Response:
        return web.json_response({"token_endpoint": f"{self.url}/token"})

    async def give(self, request: web.Request) -> web.Response:
        refresh_token = str((await request.post())["refresh_token"])
        self.tokens.append(refresh_token)
        if refresh_token != "first":
            return web.json_response({}, status=401)
        return web.json_response({"id_token": FRESH, "refresh_token": "second"})


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    played, app = Provider(), web.Application()
    app.add_routes(
        [
            web.get("/.well-known/openid-configuration", played.discover),
            web.post("/token", played.give),
        ]
    )
    listener = listen("127.0.0.1", 0)
    played.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with serving(app, listener, RequestLog(), connections_max=10):
        yield played


def kubeconfig(path: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Write a kubeconfig whose user is of the provider."""
    content = {
        "clusters": [{"name": "c", "cluster": {"server": "http://one.test:80"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "users": [
            {"name": "other", "user": {"token": "another"}},
            {"name": "u", "user": {"auth-provider": {"name": "oidc", "config": config}}},
        ],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(content))
    return content


def settings(provider: Provider, refresh_token: str = "first") -> dict[str, Any]:
    return {
        "client-id": "podium",
        "client-secret": "secret",
        "idp-issuer-url": provider.url,
        "id-token": EXPIRED,
        "refresh-token": refresh_token,
    }


async def test_a_refreshed_token_is_used_and_written_back_to_the_file_that_it_is_from(
    provider: Provider, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text(yaml.safe_dump({"current-context": "x"}))
    content = kubeconfig(second, settings(provider))
    former_content = first.read_text()
    credentials = await load(f"{first}:{second}", ManualClock(), environ={})
    assert await credentials.authorization() == f"Bearer {FRESH}"
    content["users"][1]["user"]["auth-provider"]["config"] |= {"id-token": FRESH, "refresh-token": "second"}
    assert yaml.safe_load(second.read_text()) == content
    assert first.read_text() == former_content


async def test_a_token_that_is_still_good_is_not_refreshed(provider: Provider, tmp_path: Path) -> None:
    kubeconfig(tmp_path / "config", settings(provider) | {"id-token": FRESH})
    credentials, clock = await load(str(tmp_path / "config"), ManualClock(), environ={}), ManualClock()
    clock.advance(3600)
    assert await credentials.authorization() == f"Bearer {FRESH}"
    assert not await credentials.renew(f"Bearer {FRESH}")
    assert provider.tokens == []


async def test_a_refresh_that_the_provider_refuses_is_reported_without_secrets(
    provider: Provider, tmp_path: Path
) -> None:
    kubeconfig(tmp_path / "config", settings(provider, refresh_token="void"))
    with pytest.raises(ConnectionConfigError, match="failed to refresh") as caught:
        await load(str(tmp_path / "config"), ManualClock(), environ={})
    assert provider.tokens == ["void"]
    assert "secret" not in str(caught.value)
