"""Waiting for what has no event of its own."""

from __future__ import annotations

import time
from collections.abc import Callable

import anyio

from tests.patience import PATIENCE_S, pause_s


async def eventually(condition: Callable[[], object]) -> None:
    """Return as soon as it holds."""
    with anyio.fail_after(PATIENCE_S):
        asked_s = time.monotonic()
        while not condition():
            await anyio.sleep(pause_s(asked_s, 0.005))
            asked_s = time.monotonic()
