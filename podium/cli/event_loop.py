"""Chooses the event loop of the commands and handles its errors. No other module depends on the choice.

Imports asyncio only to run one: commands that ask about files need none.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from podium.cli.output import LinesException
from podium.lib.descriptors import raise_limit
from podium.lib.error_text import UserFacingError, error_text
from podium.lib.log import get_logger

if TYPE_CHECKING:
    import asyncio

log = get_logger("cli")

T = TypeVar("T")
_TRANSPORT_CLOSED: Final = "the handler is closed"


def run(main: Callable[[], Awaitable[T]]) -> T:
    """Run on uvloop if it is installed, with the highest limit of file descriptors that the system allows."""
    import asyncio

    import anyio

    raise_limit()
    try:
        import uvloop
    except ImportError:
        return anyio.run(main, backend_options={"loop_factory": _outliving_exits(asyncio.SelectorEventLoop)})

    async def handling_errors() -> T:
        asyncio.get_running_loop().set_exception_handler(_handle_error)
        return await main()

    return anyio.run(handling_errors, backend_options={"loop_factory": _outliving_exits(uvloop.Loop)})


def run_process(main: Callable[[], Awaitable[T]]) -> T:
    """Run a long-running process as `run` does; its errors end the command with one line each."""
    from podium.server.supervision import ComponentFailedError

    try:
        try:
            return run(main)
        except SystemExit as error:
            # podium itself never raises SystemExit, but a task started by a plugin may. That is not an orderly end.
            raise ComponentFailedError(f"a task of a plugin has ended the event loop: {error_text(error)}") from error
    except* (UserFacingError, OSError) as group:
        raise LinesException(messages(group)) from None


def _outliving_exits(kind: type[asyncio.AbstractEventLoop]) -> type[asyncio.AbstractEventLoop]:
    """Derive an event loop that continues if anything but its main task raises SystemExit, as a plugin's task may.

    The same holds for KeyboardInterrupt while the main task handles SIGINT, which then does not raise it.
    """
    import asyncio

    def run_until_complete(self: Any, future: Any) -> Any:
        main, at_start = asyncio.ensure_future(future, loop=self), signal.getsignal(signal.SIGINT)
        while True:
            try:
                return kind.run_until_complete(self, main)
            except (SystemExit, KeyboardInterrupt) as error:
                if main.done() and not main.cancelled() and main.exception() is error:
                    raise
                handler = signal.getsignal(signal.SIGINT)
                if isinstance(error, KeyboardInterrupt) and handler in (at_start, signal.default_int_handler):
                    raise
                log.error("A task of a plugin has tried to end podium", error=error_text(error), exc_info=error)

    return type("Loop", (kind,), {"run_until_complete": run_until_complete})


def _handle_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log exceptions of callbacks as the loop does by default, except for two of uvloop's TLS.

    uvloop may write TLS data to a transport that it has just closed. The user of the connection still gets its error.
    And it keeps the error of a handshake for a user that may have given the connection up, as when a Lease is lost.
    """
    import asyncio

    error, future = context.get("exception"), context.get("future")
    if isinstance(error, RuntimeError) and str(error).endswith(_TRANSPORT_CLOSED):
        log.debug("TLS on a closed connection", error=str(error))
    elif isinstance(error, OSError) and future is not None and not isinstance(future, asyncio.Task):
        log.debug("A connection that was given up has failed", error=error_text(error))
    else:
        loop.default_exception_handler(context)


def messages(error: BaseException) -> list[str]:
    """Collect the messages of all errors in nested exception groups."""
    if isinstance(error, BaseExceptionGroup):
        return [message for nested_error in error.exceptions for message in messages(nested_error)]
    return [error_text(error)]
