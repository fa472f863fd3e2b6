"""The commands that the documentation shows, run as they stand there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import anyio.to_thread

from tests import warm_podium

ROOT = Path(__file__).parents[2]
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*?)(?: +#.*)?$|`((?:helm|kubectl) [^`]*)`", re.MULTILINE)


def shown_in(page: str) -> list[str]:
    """The commands in blocks, and those of helm and kubectl in sentences, in their order."""
    return [block or inline for block, inline in COMMAND.findall((ROOT / page).read_text())]


class Shell:
    """Runs commands as somebody whose ~/.kube/config is the cluster's.

    Args:
        home: becomes that user's folder.
        folder: where the commands run.
        programs: what there is beside `podium`, by name.
        instead: what stands for something else, such as an address, and what for.
    """

    def __init__(
        self,
        home: Path,
        kubeconfig: Path,
        folder: Path,
        programs: Mapping[str, Path] | None = None,
        instead: Mapping[str, str] | None = None,
    ) -> None:
        (home / ".kube").mkdir(parents=True)
        shutil.copy(kubeconfig, home / ".kube" / "config")
        for name, program in (programs or {}).items():
            (home / name).symlink_to(program)
        podium = home / "podium"
        podium.write_text(f'#!/bin/sh\nexec {warm_podium.command()} "$@"\n')
        podium.chmod(0o755)
        inherited = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
        self.environment = {**inherited, "HOME": str(home), "PATH": f"{home}:{os.environ['PATH']}"}
        self._folder = folder
        self._instead = {".venv/bin/podium": "podium", **(instead or {})}

    async def run(self, command: str, status: int = 0) -> str:
        """Return the output of the command; it has to end with that status."""
        line = command
        for part, replacement in self._instead.items():
            line = line.replace(part, replacement)
        result = await anyio.to_thread.run_sync(
            lambda: subprocess.run(
                ["sh", "-c", line], cwd=self._folder, env=self.environment, capture_output=True, text=True, check=False
            )
        )
        assert result.returncode == status, f"{command}: {result.stdout}{result.stderr}"
        return result.stdout
