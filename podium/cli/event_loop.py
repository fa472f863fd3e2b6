"""Which event loop the commands run on, nothing else knows, and the errors that come out of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from podium.lib.descriptors import raise_limit
from podium.lib.error_words import words_of

T = TypeVar("T")


def run(main: Callable[[], Awaitable[T]]) -> T:
    """Run on uvloop where there is one, with as many descriptors as the system allows."""
    raise_limit()
    try:
        import uvloop  # noqa: F401
    except ImportError:
        return anyio.run(main)
    return anyio.run(main, backend_options={"use_uvloop": True})


def messages(error: BaseException) -> list[str]:
    """What each error says that task groups have put together, at any depth."""
    if isinstance(error, BaseExceptionGroup):
        return [message for each in error.exceptions for message in messages(each)]
    return [words_of(error)]
