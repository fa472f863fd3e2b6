"""Choose the event loop of the commands and handle its errors. No other module knows which loop it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import anyio

from podium.lib.descriptors import raise_limit
from podium.lib.error_text import error_text
from podium.lib.log import get_logger

log = get_logger("cli")

T = TypeVar("T")
_TRANSPORT_CLOSED: Final = "the handler is closed"


def run(main: Callable[[], Awaitable[T]]) -> T:
    """Run on uvloop if it is installed, with the highest limit of file descriptors that the system allows."""
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
    """Log exceptions of callbacks as the loop does by default, except for a known defect of uvloop.

    uvloop may write TLS data to a transport that it has just closed. The user of the connection still gets its error.
    """
    error = context.get("exception")
    if isinstance(error, RuntimeError) and str(error).endswith(_TRANSPORT_CLOSED):
        log.debug("TLS on a closed connection", error=str(error))
    else:
        loop.default_exception_handler(context)


def messages(error: BaseException) -> list[str]:
    """The messages of all errors in nested exception groups."""
    if isinstance(error, BaseExceptionGroup):
        return [message for each in error.exceptions for message in messages(each)]
    return [error_text(error)]
