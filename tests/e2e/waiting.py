"""Waiting for something that another process does."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import aiohttp
import anyio

from tests.patience import PATIENCE_S, pause_s

T = TypeVar("T")


async def eventually(check: Callable[[], Awaitable[T]], within_s: float = PATIENCE_S) -> T:
    """Asks again and again until the answer is true, and returns it.

    A check that fails, or that finds no server, is asked again too.

    Raises: when time is up, AssertionError with the last answer, or what the check raised last.
    """
    failure: Exception
    ends_s = time.monotonic() + within_s
    while True:
        asked_s = time.monotonic()
        try:
            answer = await check()
            if answer:
                return answer
            failure = AssertionError(f"still {answer!r} after {within_s} s")
        except (AssertionError, aiohttp.ClientConnectionError) as error:
            failure = error
        if time.monotonic() > ends_s:
            raise failure
        await anyio.sleep(pause_s(asked_s))
