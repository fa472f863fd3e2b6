"""Repairs the standard streams at the start of a process. A service manager may have closed them."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def write_any_text() -> None:
    """Let standard output take any text: characters that its encoding lacks, and lone surrogates, are escaped."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def reopen_closed() -> None:
    """Open every closed standard stream on /dev/null.

    Otherwise the next file or socket would get its descriptor. Text that a library writes to standard error would then
    go to the API server, and libuv aborts the process when it closes such a descriptor.
    """
    for descriptor, (name, mode) in enumerate(_STREAMS):
        try:
            os.fstat(descriptor)
        except OSError:
            # The system returns the lowest free descriptor, and all lower ones are open by now.
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, open(descriptor, mode, closefd=False))  # noqa: SIM115 - for the life of the process
