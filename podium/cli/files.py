"""Reads the files that commands take. `-` is standard input, and compressed files are unpacked."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from io import BufferedReader, FileIO, RawIOBase
from pathlib import Path
from typing import BinaryIO, cast

import click

from podium.lib.bounded_read import read_all, too_large
from podium.lib.packed_files import BYTES_MAX, unpacked_content


def content(name: str) -> bytes:
    """Read a whole file.

    Raises:
        click.ClickException: the file cannot be read.
    """
    with errors_reported(name), open_file(name) as file:
        return read_all(file, BYTES_MAX)


def demand_one_stdin(names: Iterable[str | Path | None]) -> None:
    """Refuse `-` that occurs twice, since standard input can be read only once. Raises: click.UsageError."""
    if sum(str(name) == "-" for name in names) > 1:
        raise click.UsageError("standard input (-) can be read only once")


def lines(name: str) -> Iterator[tuple[int, bytes]]:
    """Read the lines of a file that are not blank, each with its number.

    Raises:
        click.ClickException: the file cannot be read.
    """
    with errors_reported(name), open_file(name) as file:
        number = 0
        while line := file.readline(BYTES_MAX + 1):
            number += 1
            if len(line) > BYTES_MAX:
                raise too_large()
            if line.strip():
                yield number, line


@contextmanager
def errors_reported(name: str) -> Iterator[None]:
    """Turn errors of reading the file into errors of the command."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise click.ClickException(f"{name}: {getattr(error, 'strerror', None) or error}") from error


@contextmanager
def open_file(name: str) -> Iterator[BinaryIO]:
    """Open the file, or standard input for `-`. A compressed file is unpacked."""
    with ExitStack() as stack:
        raw = sys.stdin.buffer if name == "-" else stack.enter_context(FileIO(name))
        file = BufferedReader(cast("RawIOBase", raw))
        yield stack.enter_context(unpacked_content(file))
        if name == "-":
            file.detach()
