"""Types of options that name files. A shell completes the names; the command reads the file."""

from __future__ import annotations

from typing import Any, Final

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


class Reference(PathName):
    """A plugin, module:Class or path/file.py:Class."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check the form of the reference; the plugin itself is loaded by the command."""
        location, _, class_name = value.rpartition(":")
        if not location or not class_name:
            self.fail(f"{value!r} is not module:Class or path/file.py:Class", param, ctx)
        return super().convert(value, param, ctx)


FILE: Final = PathName("file")
FOLDER: Final = PathName("dir", completes="dir")
REFERENCE: Final = Reference("reference")
