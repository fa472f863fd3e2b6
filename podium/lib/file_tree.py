"""Finds the files below a directory."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FileTree:
    """The wanted files below a directory, in order of their paths.

    Attributes:
        hidden: the files left out because their name, or that of a directory above them, begins with a dot.
    """

    files: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)


def files_below(directory: str, is_wanted: Callable[[str], bool]) -> FileTree:
    """Find the files whose names are wanted. Links are followed, but no directory is entered twice.

    Raises:
        OSError: a directory cannot be read.
    """
    tree, entered = FileTree(), set()
    for path, folders, names in os.walk(directory, onerror=_refuse, followlinks=True):
        # A mounted ConfigMap or Secret keeps its versions in directories with two dots, and links to the files there.
        folders[:] = sorted(folder for folder in folders if not folder.startswith(".."))
        real_path = os.path.realpath(path)
        if real_path in entered:
            folders.clear()
            continue
        entered.add(real_path)
        for name in filter(is_wanted, names):
            file = os.path.join(path, name)
            is_hidden = any(part.startswith(".") for part in os.path.relpath(file, directory).split(os.sep))
            (tree.hidden if is_hidden else tree.files).append(file)
    tree.files.sort()
    tree.hidden.sort()
    return tree


def _refuse(error: OSError) -> None:
    raise error
