"""The exit codes of every command, by one rule: docs/exit-codes.md has the table."""

from __future__ import annotations

from typing import Final

EXIT_FAILED: Final = 1
"""Nothing was done or answered, or only a part of it; standard error says why."""
EXIT_USAGE: Final = 2
"""The command line is not valid."""
EXIT_NO: Final = 3
"""The answer is a no: always of commands that only check, of questions with `--exit-code`."""
EXIT_INTERRUPTED: Final = 130
"""Ctrl-C ended the command."""
