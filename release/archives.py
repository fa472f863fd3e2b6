"""Archives with the same bytes on any machine: sorted, of root, with the time of the commit."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

DIRECTORY_MODE: Final = 0o755


class Member(NamedTuple):
    """A file, a symbolic link or a directory of an archive.

    Attributes:
        name: the path in the archive.
        content: of a file; None for a directory or a link.
        mode: the permissions.
        link: what a symbolic link points at.
    """

    name: str
    content: bytes | None
    mode: int = 0o644
    link: str = ""


def tar(members: Iterable[Member]) -> bytes:
    """Return an uncompressed archive of the members in this order."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member in members:
            entry = tarfile.TarInfo(member.name)
            entry.mode, entry.mtime = member.mode, build_time()
            if member.link:
                entry.type, entry.linkname = tarfile.SYMTYPE, member.link
            elif member.content is None:
                entry.type = tarfile.DIRTYPE
            else:
                entry.size = len(member.content)
            archive.addfile(entry, io.BytesIO(member.content or b""))
    return buffer.getvalue()


def compress(content: bytes) -> bytes:
    """Return the content compressed."""
    return gzip.compress(content, compresslevel=6, mtime=build_time())


def files_below(folder: Path, prefix: str) -> list[Member]:
    """Return all files and links below a folder, with their directories, sorted by name."""
    members = []
    for path in sorted(folder.rglob("*")):
        name = f"{prefix}{path.relative_to(folder).as_posix()}"
        if path.is_symlink():
            members.append(Member(name, None, 0o777, str(path.readlink())))
        elif path.is_dir():
            members.append(Member(name, None, DIRECTORY_MODE))
        else:
            # Whoever unpacked the file may have had another umask.
            members.append(Member(name, path.read_bytes(), 0o755 if path.stat().st_mode & 0o100 else 0o644))
    return members


def build_time() -> int:
    """Return the time that every archive carries, in seconds: the commit's."""
    return int(os.environ["SOURCE_DATE_EPOCH"])
