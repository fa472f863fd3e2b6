"""Ends a process together with the one that started it, however that one ends.

The starting process holds one end of a pipe, to which it writes nothing. The kernel closes that end with the process,
also at SIGKILL; the started process waits for this in a thread. A process pool brings such a pipe of its own, a command
has it as standard input.

Differs: PR_SET_PDEATHSIG needs no pipe, but exists on Linux only, and goes by the thread that started the process. The
price: native code that never releases the interpreter's lock keeps its process alive.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from threading import Thread


def end_with_pool_owner() -> None:
    """In a worker of a process pool: end with the process that owns the pool. For use as an initializer."""
    owner = multiprocessing.parent_process()
    assert owner is not None, "this is no worker of a pool"
    end_with(owner.sentinel)


def end_with(descriptor: int, grace_s: float = 0.0) -> None:
    """End this process when the other end of the pipe is closed.

    Args:
        grace_s: how long after that; until then the process may end in good order.
    """
    Thread(target=_end_with, args=(descriptor, grace_s), name="lifeline", daemon=True).start()


def _end_with(descriptor: int, grace_s: float) -> None:
    while os.read(descriptor, 4096):
        pass
    time.sleep(grace_s)
    # Neither a plugin nor a clean-up can hold this up.
    os.kill(os.getpid(), signal.SIGKILL)
