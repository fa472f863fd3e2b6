"""Passes content to a library that accepts only the path of a file, as `ssl` does for keys.

On systems with in-memory files (Linux), nothing is written to disk: this also works on a read-only file system, and no
key is left behind. Elsewhere, and in sandboxes that forbid them, a temporary file exists for as long as it is needed.
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
    """Yield the path of a file that only this process can read; it is removed afterwards.

    Raises: OSError if no such file can be created.
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
