"""Which event loop the commands run on, nothing else knows, and the errors that come out of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import anyio

from podium.lib.descriptors import raise_limit
from podium.lib.error_words import words_of
from podium.lib.log import get_logger

log = get_logger("cli")

T = TypeVar("T")
_TRANSPORT_CLOSED: Final = "the handler is closed"


def run(main: Callable[[], Awaitable[T]]) -> T:
    """Run on uvloop where there is one, with as many descriptors as the system allows."""
    raise_limit()
    try:
        import uvloop  # noqa: F401
    except ImportError:
        return anyio.run(main)

    async def handling_errors() -> T:
        asyncio.get_running_loop().set_exception_handler(_handle_error)
        return await main()

    return anyio.run(handling_errors, backend_options={"use_uvloop": True})


def _handle_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what was raised in a callback, as the loop does by itself, but for what only uvloop does wrong.

    It may answer TLS on a transport that it has just closed; whoever uses the connection is told that it is lost.
    """
    error = context.get("exception")
    if isinstance(error, RuntimeError) and str(error).endswith(_TRANSPORT_CLOSED):
        log.debug("TLS on a closed connection", error=str(error))
    else:
        loop.default_exception_handler(context)


def messages(error: BaseException) -> list[str]:
    """What each error says that task groups have put together, at any depth."""
    if isinstance(error, BaseExceptionGroup):
        return [message for each in error.exceptions for message in messages(each)]
    return [words_of(error)]
