"""Finds the commit that podium was built from."""

from __future__ import annotations

import subprocess
from importlib import resources
from pathlib import Path

import podium


def commit() -> str:
    """Return the commit of the package, or of the repository that it runs from; "" if neither is known."""
    return _commit_of_build() or _commit_of_repository()


def _commit_of_build() -> str:
    file = resources.files(podium) / "COMMIT"
    return file.read_text().strip() if file.is_file() else ""


def _commit_of_repository() -> str:
    """Return the commit that git reports if podium runs from a repository."""
    folder = Path(podium.__file__).parents[1]
    if not (folder / ".git").exists():
        return ""
    try:
        process = subprocess.run(
            ["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return process.stdout.strip()
