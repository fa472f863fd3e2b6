"""Content for a library that takes nothing but the path of a file, as `ssl` does with keys.

Where the system has files in memory (Linux), no disk is touched: that works on a read-only file system, too, and no key
is left behind. Elsewhere, and where a sandbox forbids them, a temporary file is there for as long as it is needed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Final

SHARED_MEMORY: Final = "/dev/shm"


@contextmanager
def private_file(content: bytes) -> Iterator[str]:
    """The path of a file that only this process can read, gone afterwards.

    Raises: OSError where there is no place for one.
    """
    with _in_memory() or _temporary() as file:
        file.write(content)
        file.flush()
        yield _path(file)


def _in_memory() -> IO[bytes] | None:
    try:
        file = open(os.memfd_create("podium"), "wb")  # noqa: SIM115 - the caller closes it
    except (AttributeError, OSError):
        return None
    if os.path.exists(_path(file)):
        return file
    file.close()
    return None


def _temporary() -> IO[bytes]:
    try:
        return tempfile.NamedTemporaryFile()
    except FileNotFoundError as error:
        if os.access(SHARED_MEMORY, os.W_OK):
            return tempfile.NamedTemporaryFile(dir=SHARED_MEMORY)
        raise OSError(
            error.errno, f"no file in memory, no temporary directory and no {SHARED_MEMORY} to put a key in"
        ) from error


def _path(file: IO[bytes]) -> str:
    return str(file.name) if isinstance(file.name, str) else f"/proc/self/fd/{file.fileno()}"
