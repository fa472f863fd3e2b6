"""Debian's packages of another or the same kind of machine, from the sources that apt has here.

Nothing of this machine is changed: lists and packages are kept in a folder of their own.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final, NamedTuple

from release.archives import Member

_CONFIGURATION: Final = """
APT::Architecture "{machine}";
APT::Architectures {{"{machine}";}};
APT::Sandbox::User "{user}";
Acquire::Languages "none";
Dir::State "{folder}";
Dir::State::status "/dev/null";
Dir::Cache "{folder}";
"""
_MERGED: Final = re.compile(r"^(bin|sbin|lib|lib64)(?=/|$)")
"""Directories that are links into /usr in a running Debian, and not in its packages."""
_LEFT_OUT: Final = re.compile(r"^usr/share/(?!doc/[^/]+/copyright$|ca-certificates/|zoneinfo/)|^(?!usr/|etc/)")
"""What nobody reads in an image: manuals, other languages, empty directories. The licences stay."""


class DebianPackage(NamedTuple):
    """A package as it was fetched.

    Attributes:
        control: its description, as dpkg keeps it.
    """

    name: str
    version: str
    machine: str
    sha256: str
    control: str
    file: Path

    @property
    def purl(self) -> str:
        """The package's URL (purl)."""
        return f"pkg:deb/debian/{self.name}@{self.version}?arch={self.machine}"


def fetch(names: tuple[str, ...], machine: str, folder: Path) -> list[DebianPackage]:
    """Fetch the newest packages of these names, unless the folder has packages already.

    Raises:
        SystemExit: apt is not there, or has no such packages.
    """
    if (folder / "packages").exists():
        return _descriptions(folder / "packages")
    for part in ("lists/partial", "archives/partial", "packages"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    configuration = folder / "apt.conf"
    user = "root" if os.getuid() == 0 else ""
    configuration.write_text(_CONFIGURATION.format(machine=machine, folder=folder, user=user))
    environment = {**os.environ, "APT_CONFIG": str(configuration)}
    for command in (["update"], ["download", *names]):
        try:
            result = subprocess.run(
                ["apt-get", "-q", *command],
                cwd=folder / "packages",
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
        except FileNotFoundError:
            sys.exit("the image is made of the packages of Debian 12, and apt-get is not here")
        if result.returncode:
            sys.exit(f"apt-get {command[0]} for {machine} failed: {result.stderr.strip()}")
    return _descriptions(folder / "packages")


def _descriptions(folder: Path) -> list[DebianPackage]:
    return sorted(_description(file) for file in folder.glob("*.deb"))


def _description(file: Path) -> DebianPackage:
    control = subprocess.run(["dpkg-deb", "--field", file], capture_output=True, text=True, check=True).stdout
    name, version, machine = (
        re.findall(rf"^{field}: (.*)$", control, re.MULTILINE)[0] for field in ("Package", "Version", "Architecture")
    )
    return DebianPackage(name, version, machine, hashlib.sha256(file.read_bytes()).hexdigest(), control, file)


def members(package: DebianPackage) -> list[Member]:
    """Return the files of a package as they lie in an image, and its description, by which scanners know it."""
    archive_bytes = subprocess.run(["dpkg-deb", "--fsys-tarfile", package.file], capture_output=True, check=True).stdout
    content = [Member(f"var/lib/dpkg/status.d/{package.name}", package.control.encode())]
    with tarfile.open(fileobj=io.BytesIO(archive_bytes)) as archive:
        for entry in archive:
            name = _MERGED.sub(r"usr/\1", entry.name.removeprefix("./"))
            if entry.isdir() or _LEFT_OUT.search(name):
                continue
            if entry.issym():
                content.append(Member(name, None, 0o777, _MERGED.sub(r"usr/\1", entry.linkname)))
            else:
                # A hard link has the content of its target.
                file = archive.extractfile(entry)
                assert file is not None
                content.append(Member(name, file.read(), entry.mode & 0o755))
    return content
