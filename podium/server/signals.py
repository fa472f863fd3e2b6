"""How a server reacts to signals: SIGTERM and SIGINT stop it in good order, a second one ends it at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final

import anyio

from podium.lib.log import get_logger
from podium.telemetry import flush_log

log = get_logger("daemon")

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


async def stop_on_signal(
    stop: Callable[[], None],
    is_stopping: Callable[[], bool],
    noticed_by: Callable[..., AbstractContextManager[None]] = lambda *_: nullcontext(),
) -> None:
    """Call `stop` when a signal asks for it, until cancelled.

    Args:
        is_stopping: whether the process stops already; then the next signal ends it with status 1.
        noticed_by: opened with the signals once they are received here, for others that want to see them.
    """
    with anyio.open_signal_receiver(*STOP_SIGNALS) as signals, noticed_by(*STOP_SIGNALS):
        async for received in signals:
            if is_stopping():
                log.warning("Requested to terminate again, exiting at once", signal=received.name)
                flush_log()
                os._exit(1)
            log.info("Requested to terminate, exiting", signal=received.name)
            stop()
