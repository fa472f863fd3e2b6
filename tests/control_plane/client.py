"""A thin admin client for tests: JSON objects by path over HTTP, with no code of podium's in between.

It works against any API server, real or sandbox. Paths are the API's own, such as
`/api/v1/namespaces/default/pods/web-1`.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp

Json = dict[str, Any]

_PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
_PAGE_LIMIT = 1000


class ApiError(Exception):
    """The server answered with a Status that is a failure."""

    def __init__(self, method: str, path: str, status: int, body: Json) -> None:
        super().__init__(f"{method} {path}: {status} {body.get('reason', '')}: {body.get('message', body)}")
        self.status = status
        self.reason: str = body.get("reason", "")
        self.body = body


class Client:
    """One connection pool to one API server; use it as an async context manager."""

    def __init__(self, url: str, *, token: str | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.url = url.rstrip("/")
        self.token = token
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._tls = tls

    async def __aenter__(self) -> Self:
        # A TLS connection that was closed, whose server says nothing to that, goes with the others at the end.
        connector = aiohttp.TCPConnector(
            ssl=self._tls or True, limit=64, enable_cleanup_closed=aiohttp.connector.NEEDS_CLEANUP_CLOSED
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers=self._headers,
            # A line of a watch may be as long as the largest object etcd takes.
            read_bufsize=2**21,
            timeout=aiohttp.ClientTimeout(total=None, connect=10, sock_read=60),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def get(self, path: str, **params: str) -> Json:
        return await self.request("GET", path, params=params)

    async def list(self, path: str, **params: str) -> list[Json]:
        """Every item of a collection, page by page. Selectors go in as `labelSelector="app=web"`."""
        items: list[Json] = []
        page = await self.get(path, limit=str(_PAGE_LIMIT), **params)
        items += page["items"]
        while token := page["metadata"].get("continue"):
            page = await self.get(path, limit=str(_PAGE_LIMIT), **{**params, "continue": token})
            items += page["items"]
        return items

    async def create(self, path: str, body: Mapping[str, Any]) -> Json:
        """POST to a collection, or to a subresource such as `…/pods/web-1/binding`."""
        return await self.request("POST", path, body)

    async def replace(self, path: str, body: Mapping[str, Any]) -> Json:
        return await self.request("PUT", path, body)

    async def patch(self, path: str, body: Any, kind: str = "merge", **params: str) -> Json:
        """Kinds: merge, strategic, json, apply (which wants `fieldManager="…"`)."""
        return await self.request("PATCH", path, body, params=params, content_type=_PATCH_TYPES[kind])

    async def delete(self, path: str, *, grace_s: int | None = 0, uid: str | None = None) -> Json:
        """Deletes at once unless told otherwise: no kubelet is there to end a grace period early.

        Args:
            uid: that of the object to delete, when one that was recreated under its name must stay.
        """
        options = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        preconditions = {} if uid is None else {"preconditions": {"uid": uid}}
        return await self.request("DELETE", path, {**options, **preconditions} or None)

    async def watch(self, path: str, **params: str) -> AsyncIterator[Json]:
        """Yields watch events until the server ends the watch; give `resourceVersion` to miss nothing."""
        async with self._session.get(self.url + path, params={"watch": "true", **params}) as answer:
            if answer.status >= 400:
                raise ApiError("WATCH", path, answer.status, _decode(await answer.read()))
            async for line in answer.content:
                yield json.loads(line)

    async def service_account_token(self, namespace: str, name: str) -> str:
        """A token, good for an hour, of a service account that exists."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        issued = await self.create(path, {"spec": {"expirationSeconds": 3600}})
        return str(issued["status"]["token"])

    async def text(self, path: str) -> str:
        """The body as it is, for /metrics, /readyz and the like."""
        async with self._session.get(self.url + path) as answer:
            return await answer.text()

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Json:
        """Raises: ApiError for any answer of 400 and above."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": content_type} if data is not None else {}
        async with self._session.request(method, self.url + path, data=data, headers=headers, params=params) as answer:
            document = _decode(await answer.read())
            if answer.status >= 400:
                raise ApiError(method, path, answer.status, document)
            return document


def _decode(content: bytes) -> Json:
    try:
        document = json.loads(content)
    except ValueError:
        document = None
    return document if isinstance(document, dict) else {"message": content.decode(errors="replace")}
