"""Tell a built package which commit it is made from, and where its pages are.

`podium version` shows the commit. It is PODIUM_COMMIT, where the build has no repository (as in a container image), or
that of the repository. A source distribution brings the file along, so that a wheel made from it names the same commit.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_FILE = "podium/COMMIT"

_LINK = re.compile(r"(!?)\[([^]]*)\]\((?![a-z]+:|#)([^)]+)\)")


class LinksHook(MetadataHookInterface):
    """Give the package index the README with links that lead somewhere, and the addresses of the project.

    PODIUM_URL is where podium is published. Without it there are no addresses, and the README has no links to files.
    """

    def update(self, metadata: dict[str, Any]) -> None:
        """Add `readme` and `urls`."""
        url, folder = os.environ.get("PODIUM_URL", ""), Path(self.root)
        (version,) = re.findall('^__version__ = "(.*)"$', (folder / "podium/__init__.py").read_text(), re.MULTILINE)
        metadata["readme"] = {"content-type": "text/markdown", "text": _readme(folder, url, version)}
        metadata["urls"] = (
            {}
            if not url
            else {
                "Homepage": url,
                "Source": url,
                "Documentation": f"{url}/blob/v{version}/docs/install.md",
                "Changelog": f"{url}/blob/v{version}/CHANGELOG.md",
                "Security": f"{url}/blob/v{version}/SECURITY.md",
            }
        )


def _readme(folder: Path, url: str, version: str) -> str:
    def absolute(link: re.Match[str]) -> str:
        mark, text, path = link.groups()
        if not url:
            return "" if mark else text
        return f"{mark}[{text}]({url}/{'raw' if mark else 'blob'}/v{version}/{path})"

    return _LINK.sub(absolute, (folder / "README.md").read_text())


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
