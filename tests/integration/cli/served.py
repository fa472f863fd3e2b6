"""The endpoints of a podium that runs, with its own access control, beside the sandbox that knows its users."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from podium.client.credentials import load
from podium.lib.system_clock import SystemClock
from podium.sandbox import Sandbox
from podium.server.access_options import AccessOptions
from podium.server.serving import Health, ServingTls, open_access, self_signed, serve
from podium.server.serving.server import Pages
from podium.telemetry import Metrics

TOKEN = "sandbox-token"
PAIR = self_signed()


@contextlib.asynccontextmanager
async def podium_with(
    pages: Pages, directory: Path, configz: Callable[[], Mapping[str, Any]] = dict, sandbox: Sandbox | None = None
) -> AsyncIterator[int]:
    """The port of endpoints with these pages, whose users a sandbox knows."""
    async with contextlib.AsyncExitStack() as stack:
        if sandbox is None:
            sandbox = await stack.enter_async_context(Sandbox(token=TOKEN, kubelets=False))
        credentials = await load(str(sandbox.write_kubeconfig(directory / "kubeconfig")), SystemClock())
        tls = ServingTls(PAIR)
        options = AccessOptions(authentication_skip_lookup=True)
        access = await stack.enter_async_context(open_access(options, credentials, tls, SystemClock()))
        server = await stack.enter_async_context(
            serve(
                "127.0.0.1",
                0,
                tls,
                Health(),
                Metrics(),
                configz,
                pages=pages,
                middlewares=[access.middleware],
                listener=socket.create_server(("127.0.0.1", 0)),
            )
        )
        yield server.port
