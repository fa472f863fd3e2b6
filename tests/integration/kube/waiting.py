"""Waiting for what has no event of its own."""

from __future__ import annotations

from collections.abc import Callable

import anyio


async def eventually(condition: Callable[[], object]) -> None:
    """Return as soon as it holds."""
    with anyio.fail_after(20):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.005)
