"""Which commit podium was built from."""

from __future__ import annotations

import subprocess
from importlib import resources
from pathlib import Path

import podium


def commit() -> str:
    """The commit of the package, or of the repository that it runs from; "" if nobody can tell."""
    return _built_from() or _checked_out()


def _built_from() -> str:
    file = resources.files(podium) / "COMMIT"
    return file.read_text().strip() if file.is_file() else ""


def _checked_out() -> str:
    """The commit of the repository that podium runs from, if it is installed in place and git can tell."""
    folder = Path(podium.__file__).parents[1]
    if not (folder / ".git").exists():
        return ""
    try:
        done = subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()
