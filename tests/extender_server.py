"""An extender over real HTTP that answers as a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import inspect
import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Self, TypeAlias

from aiohttp import web

Json: TypeAlias = dict[str, Any]
Reply: TypeAlias = Callable[[Any], Any] | Callable[[Any], Awaitable[Any]]
"""What to say to the body of a request: JSON, or a `Response` where it is not to be a good answer."""


def names(args: Any) -> list[str]:
    """The nodes of `ExtenderArgs`, however they are sent."""
    if args["Nodes"] is None:
        return list(args["NodeNames"])
    return [node["metadata"]["name"] for node in args["Nodes"]["items"]]


def let_through(*passing: str, failing: Json | None = None, unresolvable: Json | None = None) -> Reply:
    """Only these nodes pass; answered as asked, by name or with the nodes themselves."""

    def reply(args: Any) -> Json:
        result: Json = {"FailedNodes": failing, "FailedAndUnresolvableNodes": unresolvable}
        if args["Nodes"] is None:
            return {**result, "NodeNames": [name for name in passing if name in args["NodeNames"]]}
        items = [node for node in args["Nodes"]["items"] if node["metadata"]["name"] in passing]
        return {**result, "Nodes": {"items": items}}

    return reply


def scores(**by_name: int) -> Reply:
    """These scores, by names with underscores for hyphens; 0 for others."""
    return lambda args: [{"Host": name, "Score": by_name.get(name.replace("-", "_"), 0)} for name in names(args)]


class ExtenderServer:
    """Serves verbs under `/scheduler/`, which may have slashes. Used as an asynchronous context manager.

    Attributes: `replies`, by verb; `asked`, verb and body of each request; `headers`, those of each.
    """

    def __init__(self, tls: ssl.SSLContext | None = None, **replies: Reply) -> None:
        self.replies: dict[str, Reply] = dict(replies)
        self.asked: list[tuple[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self._tls = tls
        self._port = 0

    @property
    def url(self) -> str:
        """The `urlPrefix`."""
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self._port}/scheduler/"

    def bodies(self, verb: str) -> list[Any]:
        """What it was asked under that verb."""
        return [body for question_verb, body in self.asked if question_verb == verb]

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_post("/scheduler/{verb:.+}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        verb = request.match_info["verb"]
        body = json.loads(await request.read())
        self.asked.append((verb, body))
        self.headers.append(request.headers)
        reply = self.replies[verb](body)
        answer = await reply if inspect.isawaitable(reply) else reply
        return answer if isinstance(answer, web.StreamResponse) else web.json_response(answer)


def says(text: str, status: int = 200) -> Reply:
    """Exactly this text."""
    return lambda _: web.Response(text=text, status=status)


async def never(_: Any) -> Any:
    """No answer as long as the test lasts."""
    await asyncio.Event().wait()
