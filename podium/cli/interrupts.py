"""Control-C, and SIGTERM before anything runs, in commands that need no clean-up."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from podium.cli.exit_codes import EXIT_INTERRUPTED
from podium.lib.log import get_logger

log = get_logger("config")


@contextmanager
def _handler_set(number: signal.Signals, handler: Callable[..., Any] | signal.Handlers) -> Iterator[None]:
    old_handler = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, old_handler)


@contextmanager
def exit_at_sigint() -> Iterator[None]:
    """Let the system end the process at SIGINT.

    Python would raise KeyboardInterrupt inside a plugin, where it counts as the plugin's failure, and native code that
    never returns could not be interrupted at all.
    """
    with _handler_set(signal.SIGINT, signal.SIG_DFL):
        yield


@contextmanager
def exit_130_at_sigint() -> Iterator[None]:
    """Exit at SIGINT, and keep the output so far. For commands that run no plugins."""

    def stop(*_: object) -> None:
        raise SystemExit(EXIT_INTERRUPTED)

    with _handler_set(signal.SIGINT, stop):
        yield


@contextmanager
def exit_130_at_once() -> Iterator[None]:
    """Exit at SIGINT at once, without flushing. For commands that run plugins and print their answer at the end.

    A plugin that never returns cannot delay the exit, unless it runs native code.
    """

    def stop(*_: object) -> None:
        os._exit(EXIT_INTERRUPTED)

    with _handler_set(signal.SIGINT, stop):
        yield


@contextmanager
def exit_130_if_interrupted() -> Iterator[None]:
    """Exit with 130 if a KeyboardInterrupt ends the command. click would print "Aborted!" and exit with 1."""
    try:
        yield
    except KeyboardInterrupt:
        raise SystemExit(EXIT_INTERRUPTED) from None


@contextmanager
def exit_0_at_sigterm() -> Iterator[None]:
    """Exit at SIGTERM before anything runs. The first process of a container would ignore the signal otherwise."""
    from podium.telemetry import flush_log

    def stop(*_: object) -> None:
        log.info("Requested to terminate, exiting", signal="SIGTERM")
        flush_log()
        os._exit(0)

    with _handler_set(signal.SIGTERM, stop):
        yield


@contextmanager
def printed_whole() -> Iterator[None]:
    """Hold SIGINT back while an answer is printed: an interrupted command prints nothing, or all of it.

    The time limit of the question ends here, since the reader of the output may take any time.
    """
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)
