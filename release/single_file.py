"""One executable file with podium and all that it imports, for every Python from 3.11 on."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final, NamedTuple

PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")

_SCRIPTS: Final = ("bin/", "../../bin/")


class Target(NamedTuple):
    """A kind of machine.

    Attributes:
        system, machine: as in Go and krew, such as linux and amd64.
        platform: the same for uv.
    """

    system: str
    machine: str
    platform: str

    @property
    def name(self) -> str:
        """One word for it."""
        return f"{self.system}-{self.machine}"


def build_single_file(command: Path, target: Target, lock: Path, wheel: Path, folder: Path) -> None:
    """Write the executable.

    Modules in C have the version of Python in their file names, so those of all versions fit into one folder.

    Args:
        lock: the packages with versions and hashes.
        wheel: podium's own.
        folder: does not exist yet; packages are unpacked there.
    """
    for python in PYTHONS:
        unpack_packages(folder / python, target, python, lock)
        shutil.copytree(folder / python, folder / "all", dirs_exist_ok=True)
    # podium's wheel is pure Python. An installer would add when and where it was built.
    zipfile.ZipFile(wheel).extractall(folder / "all")
    shiv = [sys.executable, "-m", "shiv", "--reproducible", "--compressed", "--python", "/usr/bin/env python3"]
    subprocess.run(
        [*shiv, "--site-packages", folder / "all", "--console-script", "podium", "--output-file", command],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def unpack_packages(folder: Path, target: Target, python: str, lock: Path) -> None:
    """Unpack the locked packages for a kind of machine and a version of Python into a folder."""
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--target", folder]
    install += ["--python-version", python, "--python-platform", target.platform, "--only-binary", ":all:"]
    install += ["--no-deps", "--link-mode", "copy", "--require-hashes", "--requirement", lock]
    subprocess.run(install, check=True)
    (folder / ".lock").unlink(missing_ok=True)
    # Scripts begin with the path of the Python that builds, and nothing here runs them.
    shutil.rmtree(folder / "bin", ignore_errors=True)
    for record in folder.glob("*.dist-info/RECORD"):
        lines = record.read_text().splitlines(keepends=True)
        record.write_text("".join(line for line in lines if not line.startswith(_SCRIPTS)))
