"""Waiting for what has no event of its own."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from tests.patience import PATIENCE_S


async def eventually(condition: Callable[[], object]) -> None:
    """Return as soon as it holds."""
    with anyio.fail_after(PATIENCE_S):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.005)
