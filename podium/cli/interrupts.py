"""Control-C in commands that need no clean-up."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

EXIT_INTERRUPTED: Final = 130
"""The exit status after Control-C."""


@contextmanager
def exit_at_sigint() -> Iterator[None]:
    """Let the system end the process at SIGINT.

    Python would raise KeyboardInterrupt inside a plugin, where it counts as the plugin's failure, and native code that
    never returns could not be interrupted at all.
    """
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def exit_130_at_sigint() -> Iterator[None]:
    """Exit at SIGINT with what was printed so far. For commands that run no plugins."""

    def stop(*_: object) -> None:
        raise SystemExit(EXIT_INTERRUPTED)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def exit_130_at_once() -> Iterator[None]:
    """Exit at SIGINT without what is not printed yet. For commands that run plugins and print their answer at the end.

    A plugin that never returns cannot hold the command up, unless it does so in native code.
    """

    def stop(*_: object) -> None:
        os._exit(EXIT_INTERRUPTED)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def printed_whole() -> Iterator[None]:
    """Hold SIGINT back while an answer is printed: an interrupted command prints nothing, or all of it.

    The time limit of the question ends here, since whoever reads may take any time.
    """
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
