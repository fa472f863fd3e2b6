"""Types of options that name files. A shell completes the names; the command reads the file."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import CompletionItem
from click.types import StringParamType


class PathName(StringParamType):
    """Any text, for which a shell offers names of files or directories.

    Args:
        name: the value's name in the help, in lower case.
        completes: `file` or `dir`, the words of click's scripts for shells.
    """

    def __init__(self, name: str, completes: str = "file") -> None:
        self.name = name
        self._completes = completes

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Let the shell complete the names itself."""
        del ctx, param
        return [CompletionItem(incomplete, type=self._completes)]


FILE: Final = PathName("file")
FOLDER: Final = PathName("dir", completes="dir")
REFERENCE: Final = PathName("reference")
"""A plugin, module:Class or path/file.py:Class."""
