"""Ends a command that cannot continue with one line on standard error and exit status 1, never with a traceback.

Owns the causes that are common to all commands: an input that exceeds the memory or the stack, and an output that
cannot be written. If the reader of a pipe has closed it, the command ends with 1 as well, but prints nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from traceback import format_exception
from types import TracebackType
from typing import Final, TextIO

from podium.cli.exit_codes import EXIT_FAILED

_OF_OUTPUT: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF, errno.EPIPE})
"""Errors of writing to standard output. Errors of named files are reported where the files are opened."""


@contextlib.contextmanager
def report_fatal_errors() -> Iterator[None]:
    """Run a command and flush its output. If the output cannot be written, the exit status is 1."""
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


def show_traceback(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Print the traceback of a defect as Python does, with control characters in quoted text escaped.

    Ctrl-C is no defect, wherever it comes: nothing is printed.
    """
    if issubclass(kind, KeyboardInterrupt):
        return
    from podium.lib.printable import printable_lines

    text = "".join(format_exception(kind, error, traceback)).rstrip("\n")
    with contextlib.suppress(OSError, ValueError):
        print(printable_lines(text), file=sys.stderr, flush=True)


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
    """Discard the buffer of a failing stream. Otherwise the interpreter prints an error when it exits."""
    try:
        _flush(stream)
    except OSError:
        assert stream is not None
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
