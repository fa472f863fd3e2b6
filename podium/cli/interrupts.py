"""Control-C in commands that run plugins and need no clean-up."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


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
