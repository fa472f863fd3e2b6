"""Trust in plugin files: a file that another user could have changed is not run.

Owns that rule. Only root, the user that podium runs as, and the owner of podium's own code may be able to change the
file, a directory on the path to it, or a link. Files on a read-only mount are trusted: ConfigMaps are mounted that way,
with directories of mode 0777.
"""

from __future__ import annotations

import grp
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import podium


def distrust_reason(path: Path) -> str | None:
    """Return why code in that file must not be run; None if it may. The file must exist."""
    for part in _path_and_parents(path):
        try:
            file_status = part.lstat()
        except (FileNotFoundError, NotADirectoryError):
            # A path inside an archive; the archive itself is one of the parents and is checked.
            continue
        if stat.S_ISLNK(file_status.st_mode) or _is_read_only(part):
            continue
        if file_status.st_uid not in _trusted_users():
            return f"{part} belongs to another user, uid {file_status.st_uid}"
        # In a directory with the sticky bit, such as /tmp, a user cannot replace files of other users.
        if stat.S_ISDIR(file_status.st_mode) and file_status.st_mode & stat.S_ISVTX:
            continue
        if file_status.st_mode & stat.S_IWOTH:
            return f"{part} can be written by everybody (mode {stat.S_IMODE(file_status.st_mode):04o}); chmod o-w helps"
        if file_status.st_mode & stat.S_IWGRP and not _is_private_group(file_status.st_gid):
            return f"{part} can be written by its group (mode {stat.S_IMODE(file_status.st_mode):04o}); chmod g-w helps"
    return None


def _path_and_parents(path: Path) -> Iterator[Path]:
    """Yield the file and every directory on the path to it, first as given, then with links resolved."""
    unresolved, resolved = Path(os.path.abspath(path)), path.resolve()
    yield from dict.fromkeys((unresolved, *unresolved.parents, resolved, *resolved.parents))


def _trusted_users() -> frozenset[int]:
    return frozenset({0, os.geteuid(), Path(podium.__file__).stat().st_uid})


def _is_read_only(part: Path) -> bool:
    return bool(os.statvfs(part).f_flag & os.ST_RDONLY)


def _is_private_group(gid: int) -> bool:
    """Return whether the group is the user's own and has no other members, as is usual with a umask of 002."""
    if gid != os.getegid():
        return False
    try:
        members = set(grp.getgrgid(gid).gr_mem)
    except KeyError:
        return True
    return members <= {os.environ.get("USER", ""), "root"}
