"""The standard streams that a process begins with; a service manager may have closed them."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def write_any_text() -> None:
    """Have standard output take any text: what its encoding lacks, or is no character at all, is escaped."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def reopen_closed() -> None:
    """Have every standard stream open; one that was closed leads nowhere.

    Otherwise the next file or socket would get its number: what a library writes to standard error would then go to the
    API server, and libuv ends the process when it closes such a descriptor.
    """
    for descriptor, (name, mode) in enumerate(_STREAMS):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free number is taken, and those below are open by now.
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, open(descriptor, mode, closefd=False))  # noqa: SIM115 - for the life of the process
