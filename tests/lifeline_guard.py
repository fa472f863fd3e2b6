"""Becomes a command that ends when a pipe is closed: `lifeline_guard.py DESCRIPTOR COMMAND...` (`tests.lifeline`)."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys


def main() -> None:
    """Start the watching process, and become the command."""
    lifeline, command = int(sys.argv[1]), sys.argv[2:]
    own_pid = os.getpid()
    is_leader = os.getpgid(0) == own_pid
    # The command inherits one end, so that the other is closed when it has ended, with all that it has started.
    has_ended, write_end = os.pipe()
    if os.fork() == 0:
        # A grandchild, whose end the command need not know of.
        if os.fork() == 0:
            os.close(write_end)
            _watch(lifeline, has_ended, own_pid, is_leader=is_leader)
        os._exit(0)
    os.wait()
    for descriptor in (lifeline, has_ended):
        os.close(descriptor)
    os.set_inheritable(write_end, True)
    # Python ignores these, and what it executes would do so, too.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execvp(command[0], command)


def _watch(lifeline: int, has_ended: int, guard_pid: int, *, is_leader: bool) -> None:
    # Signals to the terminal or to the command's group are not meant for this process.
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    ready, _, _ = select.select([lifeline, has_ended], [], [])
    if has_ended not in ready:
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if is_leader else os.kill)(guard_pid, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main()
