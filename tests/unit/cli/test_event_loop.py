from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys

import pytest
from structlog.testing import capture_logs

from podium.cli.event_loop import run


@pytest.mark.parametrize("with_uvloop", [True, False])
def test_a_task_or_callback_of_a_plugin_that_exits_ends_nothing(
    with_uvloop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not with_uvloop:
        monkeypatch.setitem(sys.modules, "uvloop", None)

    async def exits() -> None:
        raise SystemExit(0)

    def interrupts() -> None:
        raise KeyboardInterrupt

    async def main() -> str:
        loop = asyncio.get_running_loop()
        task = loop.create_task(exits())
        await asyncio.wait((task,))
        loop.call_soon(sys.exit, 3)
        await asyncio.sleep(0.01)
        loop.add_signal_handler(signal.SIGINT, lambda: None)
        loop.call_soon(interrupts)
        await asyncio.sleep(0.01)
        assert isinstance(task.exception(), SystemExit)
        return "done"

    with capture_logs() as logs:
        assert run(main) == "done"
    errors = [entry["error"] for entry in logs if entry["event"] == "A task of a plugin has tried to end podium"]
    assert errors == ["SystemExit: 0", "SystemExit: 3", "KeyboardInterrupt"]


def test_an_interrupt_ends_a_command_that_does_not_handle_it() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_soon(interrupts)
        await asyncio.sleep(10)

    def interrupts() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(main)


@pytest.mark.parametrize("at_start", [signal.default_int_handler, signal.SIG_IGN])
def test_an_interrupt_ends_a_command_that_has_ceased_to_handle_it(at_start: signal.Handlers) -> None:
    """SIGINT is ignored at the start in a command that a shell runs in the background."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, lambda: None)
        loop.remove_signal_handler(signal.SIGINT)
        loop.call_soon(signal.raise_signal, signal.SIGINT)
        await asyncio.sleep(10)

    handler = signal.signal(signal.SIGINT, at_start)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(main)
    finally:
        signal.signal(signal.SIGINT, handler)


def test_an_exit_by_the_command_itself_ends_it() -> None:
    async def main() -> None:
        raise SystemExit(7)

    with pytest.raises(SystemExit, match="7"):
        run(main)


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


@pytest.mark.parametrize(
    ("error", "is_told"), [(ConnectionResetError("reset"), False), (ValueError("a mistake"), True)]
)
def test_a_handshake_that_fails_after_its_connection_was_given_up_is_no_error(
    error: Exception, is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        # As uvloop does for the handshake of a connection whose user was cancelled before.
        asyncio.get_running_loop().create_future().set_exception(error)
        gc.collect()

    with caplog.at_level(logging.ERROR, "asyncio"):
        run(main)
    assert [record.exc_info is not None for record in caplog.records] == [True] * is_told


def test_a_failed_task_that_nothing_waits_for_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise OSError("of a plugin")

    async def main() -> None:
        task = asyncio.create_task(fail())
        await asyncio.wait((task,))

    with caplog.at_level(logging.ERROR, "asyncio"):
        run(main)
        gc.collect()
    assert ["of a plugin" in caplog.text, len(caplog.records)] == [True, 1]
