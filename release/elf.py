"""Programs and libraries of an image: all of its kind of machine, and each with the libraries that it asks for."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from release.archives import Member

_MACHINES: Final = {"amd64": 62, "arm64": 183}
"""Numbers of machines in the ELF header."""
_NEEDED: Final = re.compile(r"\(NEEDED\).*\[(.*)\]")


def elf_problems(members: Iterable[Member], machine: str) -> list[str]:
    """Return a line for each file of another machine, and for each library that is asked for and is not there."""
    programs = {
        member.name: member.content for member in members if member.content and member.content[:4] == b"\x7fELF"
    }
    names = {PurePosixPath(member.name).name for member in members}
    problems = [
        f"{name} is not for {machine}"
        for name, content in programs.items()
        if int.from_bytes(content[18:20], "little") != _MACHINES[machine]
    ]
    with TemporaryDirectory() as folder:
        for name, content in programs.items():
            file = f"{folder}/program"
            with open(file, "wb") as stream:
                stream.write(content)
            dynamic = subprocess.run(["readelf", "--dynamic", file], capture_output=True, text=True, check=True).stdout
            problems += [f"{name} needs {library}" for library in _NEEDED.findall(dynamic) if library not in names]
    return problems
