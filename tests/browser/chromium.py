"""Finds a Chromium that needs no screen: a pinned build from npm, which needs neither root nor a package of the system.

`PODIUM_CHROMIUM` names another one. Where the pinned build cannot be had (it is for Linux on x86-64), one on PATH is
used: `apt-get install chromium` puts one there.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.browser import npm
from tests.control_plane.builder import BuildError, lock
from tests.control_plane.locate import cache_root
from tests.control_plane.progress import Progress

PACKAGE: Final = npm.Package(
    "@sparticuz/chromium",
    "153.0.0",
    "jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA==",
)
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_HOW: Final = "install one (apt-get install chromium) or name one in PODIUM_CHROMIUM"
# Python's standard library has no Brotli; node has.
_UNPACK: Final = """
const [source, target] = process.argv.slice(1);
const {createReadStream, createWriteStream} = require("fs");
const unpacked = require("zlib").createBrotliDecompress();
require("stream").pipeline(createReadStream(source), unpacked, createWriteStream(target), error => {
  if (error) { console.error(String(error)); process.exit(1); }
});
"""
_FONTS: Final = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{folder}/fonts</dir><cachedir>{folder}/fonts-cache</cachedir></fontconfig>
"""


@dataclass(frozen=True, slots=True)
class Chromium:
    """The program, and what its environment must have beside the usual."""

    program: Path
    environ: Mapping[str, str] = field(default_factory=dict)


def obtain(progress: Progress, environ: Mapping[str, str] = os.environ) -> Chromium:
    """The first that is found, in this order: named, pinned (fetched when it is not in the cache), on PATH.

    Raises: BuildError.
    Cost: nothing when it is in the cache; 70 MB and half a minute of one core when it has to be fetched.
    """
    if program_path := environ.get("PODIUM_CHROMIUM"):
        if not Path(program_path).is_file():
            raise BuildError(f"PODIUM_CHROMIUM={program_path} is no file")
        return Chromium(Path(program_path))
    if (platform.system(), platform.machine()) == ("Linux", "x86_64"):
        try:
            return _obtain_pinned(cache_root(environ), progress, environ)
        except BuildError as problem:
            reason = str(problem)
    else:
        reason = f"the pinned build is not for {platform.system()} on {platform.machine()}"
    for name in _NAMES:
        if on_path := shutil.which(name, path=environ.get("PATH", "")):
            progress.phase(f"{reason}; using {on_path}")
            return Chromium(Path(on_path))
    raise BuildError(f"{reason}; {_HOW}")


def _obtain_pinned(cache: Path, progress: Progress, environ: Mapping[str, str]) -> Chromium:
    entry = cache / f"chromium-{PACKAGE.version}"
    with lock(cache / f"{entry.name}.lock", progress):
        if not entry.is_dir():
            packed = npm.obtain(PACKAGE, progress, environ) / "bin"
            progress.phase("unpacking Chromium")
            unfinished = cache / f"{entry.name}.unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            node = npm.find_node(cache, progress)
            _unpack(packed / "chromium.br", unfinished / "chromium", node)
            (unfinished / "chromium").chmod(0o755)
            for name in ("al2023", "fonts", "swiftshader"):
                archive = unfinished / f"{name}.tar"
                _unpack(packed / f"{archive.name}.br", archive, node)
                with tarfile.open(archive) as files:
                    files.extractall(unfinished, filter="data")
                archive.unlink()
            (unfinished / "fonts.conf").write_text(_FONTS.format(folder=entry))
            unfinished.rename(entry)
            shutil.rmtree(cache / PACKAGE.key)
    # Its own libraries and its own font: nothing of the machine is needed, and a screenshot is the same everywhere.
    libraries = {"LD_LIBRARY_PATH": str(entry / "lib"), "FONTCONFIG_FILE": str(entry / "fonts.conf")}
    return Chromium(entry / "chromium", libraries)


def _unpack(source: Path, target: Path, node: Path) -> None:
    command = ["node", "-e", _UNPACK, str(source), str(target)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, env=npm.with_node(node))
    if answer.returncode != 0:
        raise BuildError(f"{source.name} cannot be unpacked: {(answer.stderr.strip() or 'no output').splitlines()[-1]}")
