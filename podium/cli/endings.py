"""How a command ends that cannot go on: with one line on standard error and exit status 1, never with a traceback.

Owns the causes that any command may meet: an input that is too much for the memory or the stack, an output that takes
no more. A reader that closed its end of a pipe is no fault: the command ends without a word, with 1, too.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import Final, TextIO

EXIT_FAILED: Final = 1

_OF_OUTPUT: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF, errno.EPIPE})
"""What writing to standard output may meet. Files have names, and their errors are reported where they are read."""


@contextlib.contextmanager
def in_one_line() -> Iterator[None]:
    """Run a command; everything it has printed is out at the end, or the exit status says that it is not."""
    try:
        try:
            yield
        finally:
            _flush(sys.stdout)
    except MemoryError:
        _fail("not enough memory for this input")
    except RecursionError:
        _fail("an input is nested too deep")
    except OSError as error:
        if error.filename is not None or error.errno not in _OF_OUTPUT:
            raise
        _fail("" if error.errno == errno.EPIPE else f"cannot write the output: {error.strerror}")


def _flush(stream: TextIO | None) -> None:
    if stream is not None and not stream.closed:
        stream.flush()


def _fail(reason: str) -> None:
    with contextlib.suppress(OSError):
        if reason:
            print(f"Error: {reason}", file=sys.stderr, flush=True)
    _give_up(sys.__stdout__)
    _give_up(sys.__stderr__)
    raise SystemExit(EXIT_FAILED) from None


def _give_up(stream: TextIO | None) -> None:
    """What is still to be written to a stream that fails goes nowhere, or the interpreter would complain at its end."""
    try:
        _flush(stream)
    except OSError:
        assert stream is not None
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
