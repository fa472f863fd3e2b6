"""A configuration file that changes while podium runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

IN_USE: Final = "The changed configuration is in use"


class Mounted:
    """A file in a volume of a ConfigMap, as the kubelet mounts it."""

    def __init__(self, directory: Path, text: str, name: str = "config.yaml") -> None:
        self._directory = directory
        self._versions = 0
        directory.mkdir()
        self.path = directory / name
        self.put(text)
        self.path.symlink_to(f"..data/{name}")

    def put(self, text: str) -> None:
        """Change the content, as an update of the ConfigMap does."""
        self._versions += 1
        version = self._directory / f"..{self._versions}"
        version.mkdir()
        (version / self.path.name).write_text(text)
        link = self._directory / "..data_tmp"
        link.symlink_to(version.name)
        os.replace(link, self._directory / "..data")
