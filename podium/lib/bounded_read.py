"""Reads files of unknown size: a device or a huge file is refused before it fills the memory."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import BinaryIO


def read_file(path: str | Path, bytes_max: int) -> bytes:
    """Return the whole content of a file. Raises: OSError, "File too large" among others."""
    with open(path, "rb") as file:
        return read_all(file, bytes_max)


def read_all(file: BinaryIO, bytes_max: int) -> bytes:
    """Return the rest of an open file. Raises: OSError, as `read_file`."""
    content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise too_large()
    return content


def too_large() -> OSError:
    """Return the error for a file or a line that exceeds its limit."""
    return OSError(errno.EFBIG, os.strerror(errno.EFBIG))
