"""Control-C in commands that run plugins and keep nothing that would have to be put away."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Let the system end the process at SIGINT.

    As a KeyboardInterrupt it would come up inside a plugin and count as the plugin's failure; and a plugin that never
    returns would not be interrupted at all.
    """
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
