from __future__ import annotations

import asyncio
import logging

import pytest

from podium.cli.event_loop import run

CLOSED = "unable to perform operation on <TCPTransport closed=True>; the handler is closed"


@pytest.mark.parametrize(
    ("error", "is_told"), [(RuntimeError(CLOSED), False), (RuntimeError("a mistake"), True), (OSError(CLOSED), True)]
)
def test_only_what_uvloop_does_to_a_transport_that_it_has_closed_is_no_error(
    error: Exception, is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_exception_handler({"message": "Fatal error", "exception": error})

    with caplog.at_level(logging.ERROR, "asyncio"):
        run(main)
    assert [record.exc_info is not None for record in caplog.records] == [True] * is_told
