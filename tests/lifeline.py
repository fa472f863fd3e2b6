"""Processes that end with the tests that have started them, whatever ends the tests.

A test process holds one end of a pipe. What it starts through here is watched by a second process, which waits for the
other end: it kills the started one with its whole group when the tests are gone, and ends when the started one has.
This works for any program. The started process keeps its number, its output and its exit code.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

_GUARD: Final = Path(__file__).with_name("lifeline_guard.py")
_READ, _HELD = os.pipe()
# Open as long as this process runs, and in no other one.

PASSED: Final = (_READ,)
"""The descriptors that a guarded command needs to inherit."""


def guard(command: Sequence[str | Path]) -> list[str | Path]:
    """The command, watched; to be started with `pass_fds=PASSED`."""
    return [sys.executable, "-I", "-S", _GUARD, str(_READ), *command]


def start(command: Sequence[str | Path], **options: Any) -> subprocess.Popen[Any]:
    """As `subprocess.Popen`."""
    return subprocess.Popen(guard(command), pass_fds=PASSED, **options)
