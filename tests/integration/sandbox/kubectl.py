"""The real kubectl, as a function."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from tests.patience import PATIENCE_S


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with a home and a kubeconfig of its own."""

    path: Path
    home: Path

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            self.path,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"HOME": str(self.home), "KUBECONFIG": str(self.home / "kubeconfig"), "PATH": os.environ["PATH"]},
        )

    async def fail(self, *arguments: str) -> str:
        """Run a command that must fail; returns what it says."""
        process = await self.start(*arguments)
        _, errors = await process.communicate()
        assert process.returncode, f"kubectl {' '.join(arguments)} succeeded"
        return errors.decode()

    async def __call__(self, *arguments: str) -> str:
        """Run a command that must succeed; returns what it prints."""
        process = await self.start(*arguments)
        async with asyncio.timeout(PATIENCE_S):
            printed, errors = await process.communicate()
        assert process.returncode == 0, f"kubectl {' '.join(arguments)}: {errors.decode()}"
        return printed.decode()


def rows(printed: str) -> list[list[str]]:
    """What kubectl prints, by line and word."""
    return [line.split() for line in printed.splitlines()]
