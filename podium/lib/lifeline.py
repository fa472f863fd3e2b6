"""Ends a process together with its parent, however the parent ends.

The parent holds one end of a pipe and never writes to it. The kernel closes that end with the parent, even at SIGKILL;
the child waits for this in a thread. A process pool has such a pipe of its own; for a command it is standard input.

Differs: PR_SET_PDEATHSIG needs no pipe, but exists on Linux only, and follows the thread that started the process, not
the process. The price: native code that never releases the interpreter's lock keeps its process alive.
"""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import time
from threading import Thread


def end_with_pool_owner() -> None:
    """End a pool's worker together with the process that owns the pool; use it as the pool's initializer."""
    owner = multiprocessing.parent_process()
    assert owner is not None, "this is no worker of a pool"
    end_with(owner.sentinel)


def end_with(descriptor: int, grace_s: float = 0.0) -> None:
    """End this process when the other end of the pipe is closed.

    Args:
        grace_s: the delay before the process is killed, in which it may end in good order.
    """
    Thread(target=_end_with, args=(descriptor, grace_s), name="lifeline", daemon=True).start()


def end_with_writer(descriptor: int, grace_s: float) -> None:
    """End this process when the last writer to this pipe has closed it; the pipe is left for others to read.

    Args:
        grace_s: the delay before the process is killed, in which it may end in good order.
    """
    Thread(target=_end_with_writer, args=(descriptor, grace_s), name="lifeline", daemon=True).start()


def _end_with_writer(descriptor: int, grace_s: float) -> None:
    hang_ups = select.poll()
    # No events are asked for: the kernel reports a hang-up all the same, and a file never hangs up.
    hang_ups.register(descriptor, 0)
    if hang_ups.poll():
        time.sleep(grace_s)
        os.kill(os.getpid(), signal.SIGKILL)


def _end_with(descriptor: int, grace_s: float) -> None:
    while os.read(descriptor, 4096):
        pass
    time.sleep(grace_s)
    # SIGKILL, since a plugin or a clean-up could delay any other end.
    os.kill(os.getpid(), signal.SIGKILL)
