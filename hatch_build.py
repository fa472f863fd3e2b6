"""Tell a built package which commit it is made from: `podium version` shows it.

The commit is PODIUM_COMMIT, where the build has no repository (as in a container image), or that of the repository. A
source distribution brings the file along, so that a wheel made from it names the same commit.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_FILE = "podium/COMMIT"


class CommitHook(BuildHookInterface):
    """Add the file that names the commit to a wheel and to a source distribution."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file, unless podium is installed in place or nobody knows the commit."""
        if version == "editable" or (Path(self.root) / _FILE).exists():
            return
        commit = os.environ.get("PODIUM_COMMIT") or _commit_of(self.root)
        if commit:
            self._folder = tempfile.TemporaryDirectory()
            file = Path(self._folder.name) / "COMMIT"
            file.write_text(commit + "\n")
            build_data["force_include"][str(file)] = _FILE


def _commit_of(folder: str) -> str:
    if not (Path(folder) / ".git").exists():
        return ""
    done = subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip()
