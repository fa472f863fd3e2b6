"""Content for a library that takes nothing but the path of a file, as `ssl` does with keys.

Where the system has files in memory (Linux), no disk is touched: that works on a read-only file system, too, and no key
is left behind.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def private_file(content: bytes) -> Iterator[str]:
    """The path of a file that only this process can read, gone afterwards.

    Raises: OSError where there is no place for one.
    """
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("podium"), "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with tempfile.NamedTemporaryFile() as temporary:
        temporary.write(content)
        temporary.flush()
        yield temporary.name
