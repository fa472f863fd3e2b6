"""Requests to one extender.

Owns the connections to the extender and the deadline, and turns every way a request can fail into an `ExtenderFailed`.
Never sends a binding twice, and repeats another request only if the connection was closed before any response.

Source: kubernetes pkg/scheduler/extender.go, v1.36.2.
Differs: proxies from the environment are not used; user and password of the URL do not appear in messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from types import TracebackType
from typing import Final, Self, TypeVar

import aiohttp
import anyio

import podium
from podium.binder.extenders.tls import tls_context
from podium.binder.extenders.wire import (
    WireError,
    binding_args,
    filter_args,
    preemption_args,
    read_bound,
    read_filtered,
    read_preemptable,
    read_scores,
)
from podium.client.streams import read_some
from podium.config import Extender, format_duration
from podium.framework.contract.questions import (
    AskFilter,
    AskPreempt,
    AskPrioritize,
    ExtenderFailed,
    Filtered,
    Preemptable,
)
from podium.objects.core import Pod

T = TypeVar("T")

_TIMEOUT_S: Final = 5.0
_OK: Final = 200
_ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024
"""The size limit of a response is this plus twice the request's size: the extender may send all nodes back."""
_CLOSE_S_MAX: Final = 2.0
_READ_BUFFER_BYTES: Final = 2 * 1024 * 1024
_PIECE_BYTES_MAX: Final = 1024 * 1024


class _TooLong(Exception):  # noqa: N818 - named after the response
    """A response is larger than any valid one."""


class ExtenderClient:
    """Sends requests to one extender. An asynchronous context manager, to be entered on the loop that sends them.

    Raises:
        ConnectionConfigError: the extender's TLS settings cannot be used.
    """

    def __init__(self, extender: Extender) -> None:
        self.extender = extender
        self._tls = tls_context(extender)
        self._server_name = extender.tls_config.server_name if extender.tls_config is not None else ""
        self._timeout_s = extender.http_timeout_s or _TIMEOUT_S
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        """Create the connection pool; connects to nothing yet."""
        # No limit of connections here: the pool limits bindings, and questions are asked one by one.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._tls),
            timeout=aiohttp.ClientTimeout(total=self._timeout_s),
            headers={"Content-Type": "application/json", "User-Agent": f"podium/{podium.__version__}"},
            # Scheduling must not depend on cookies or a proxy of the environment.
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            read_bufsize=_READ_BUFFER_BYTES,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all connections."""
        with anyio.move_on_after(_CLOSE_S_MAX, shield=True):
            await self._session.close()

    async def filter(self, question: AskFilter) -> Filtered | ExtenderFailed:
        """Ask for the nodes on which the pod may run."""
        body = filter_args(self.extender, question.pod, question.nodes)
        return await self._ask(self.extender.filter_verb, body, lambda answer: read_filtered(question, answer))

    async def prioritize(self, question: AskPrioritize) -> Sequence[tuple[str, int]] | ExtenderFailed:
        """Ask for the extender's scores of the nodes."""
        body = filter_args(self.extender, question.pod, question.nodes)
        return await self._ask(self.extender.prioritize_verb, body, lambda answer: read_scores(self.extender, answer))

    async def preempt(self, question: AskPreempt) -> Preemptable | ExtenderFailed:
        """Ask for the nodes on which the pod may preempt, and the victims."""
        body = preemption_args(question)
        return await self._ask(self.extender.preempt_verb, body, lambda answer: read_preemptable(question, answer))

    async def bind(self, pod: Pod, node_name: str) -> ExtenderFailed | None:
        """Let the extender bind the pod to the node; after a failure the pod may be bound all the same."""
        body = binding_args(pod, node_name)
        return await self._ask(self.extender.bind_verb, body, lambda answer: read_bound(self.extender, answer))

    async def _ask(self, verb: str, body: bytes, read: Callable[[bytes], T]) -> T | ExtenderFailed:
        try:
            status, answer = await self._post(verb, body)
        except TimeoutError:
            return self._failure(verb, f"no answer within {format_duration(self._timeout_s)}")
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError):
            return self._failure(verb, "the URL cannot be used")
        except (aiohttp.ClientError, OSError, _TooLong) as error:
            return self._failure(verb, str(error) or type(error).__name__)
        if status != _OK:
            return self._failure(verb, f"code {status}")
        try:
            return read(answer)
        except WireError as error:
            return self._failure(verb, f"the answer makes no sense: {error}")

    async def _post(self, verb: str, body: bytes) -> tuple[int, bytes]:
        """Return status and body of the response. Repeat the request once, unless it binds, if the server hung up."""
        url = f"{self.extender.url_prefix.rstrip('/')}/{verb}"
        # A kept connection that the server has closed fails at once; a binding may have been carried out before that.
        for is_last in (verb == self.extender.bind_verb, True):
            try:
                # A large body is sent in pieces, so that other tasks can run in between.
                data = BytesIO(body) if len(body) > _PIECE_BYTES_MAX else body
                async with self._session.post(url, data=data, server_hostname=self._server_name or None) as response:
                    if response.status != _OK:
                        # Upstream does not read the body of an error either.
                        return response.status, b""
                    return _OK, await _read_body(response, _ANSWER_BYTES_MAX + 2 * len(body))
            except aiohttp.ServerDisconnectedError:
                if is_last:
                    raise
        raise AssertionError("the last try returns or raises")

    def _failure(self, verb: str, detail: str) -> ExtenderFailed:
        return ExtenderFailed(self.extender, f"failed {verb}: {detail}")


async def _read_body(response: aiohttp.ClientResponse, bytes_max: int) -> bytes:
    """Read the body, decompressed. Raises: `_TooLong`."""
    chunks: list[bytes] = []
    length = 0
    while chunk := await read_some(response):
        chunks.append(chunk)
        length += len(chunk)
        if length > bytes_max:
            raise _TooLong(f"the answer has more than {bytes_max} bytes")
    return b"".join(chunks)
