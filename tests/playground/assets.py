"""What the playground runs on, fetched once and checked: Pyodide from npm, and wheels for WebAssembly from PyPI."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import urllib.error
import urllib.request
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.browser import npm
from tests.control_plane.builder import BuildError, lock
from tests.control_plane.locate import cache_root
from tests.control_plane.progress import Progress

PYODIDE: Final = npm.Package(
    "pyodide",
    "314.0.4",
    "fMexKS5P/s8iTjczevLUv/aWq9i5yaGvBTpBW6gM+nzDNelfPpREma/xdDK2AAGebAuKnBJk7fyVP6RBlz4btg==",
)
PYODIDE_FILES: Final = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
)
_FILES: Final = "https://files.pythonhosted.org/packages"
_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel for Pyodide's Python and ABI. `member` is its path within the file at the URL, if that carries it."""

    name: str
    sha256: str
    url: str
    member: str = ""


WHEELS: Final = (
    # NumPy has no wheel for WebAssembly on PyPI, and Pyodide's build of it is not on npm. Open WebUI's wheel carries
    # that build; the checksum is the one in Pyodide's own list of packages, which `obtain` makes sure of.
    Wheel(
        "numpy-2.4.3-cp314-cp314-pyemscripten_2026_0_wasm32.whl",
        "0cad9c1b91f0082e4f959bc0e0bf5835a2efbba6ab3b1e9d1fe6e7e564cca98e",
        f"{_FILES}/d5/68/ba67840b98eb35636dbfb0685a6b4c3c02e26bd60e500f56d2e52216c13c/"
        "open_webui-0.12.4-py3-none-any.whl",
        "open_webui/frontend/pyodide/numpy-2.4.3-cp314-cp314-pyemscripten_2026_0_wasm32.whl",
    ),
    Wheel(
        "msgspec-0.22.0-cp314-cp314-pyemscripten_2026_0_wasm32.whl",
        "a66b1766311e42371e509c996c3933b161c7ae0eabdf361af5316dec197e1022",
        f"{_FILES}/75/5d/c0e6bdb81a87f6bd56a663a330c271af7670490c80d8d635d9fa21ad1adf/"
        "msgspec-0.22.0-cp314-cp314-pyemscripten_2026_0_wasm32.whl",
    ),
)


@dataclass(frozen=True, slots=True)
class Assets:
    """The folder of Pyodide, and that of the wheels."""

    pyodide: Path
    wheels: Path


def obtain(progress: Progress, environ: Mapping[str, str] = os.environ) -> Assets:
    """Both folders, filled when they are not in the cache.

    Raises: BuildError.
    Cost: nothing when they are in the cache; 10 MB when they have to be fetched.
    """
    pyodide = npm.obtain(PYODIDE, progress, environ)
    lock_text = (pyodide / "pyodide-lock.json").read_text()
    assert WHEELS[0].sha256 in lock_text, "NumPy is the one that this release of Pyodide was tested with"
    content = hashlib.sha256(repr(WHEELS).encode()).hexdigest()[:12]
    cache = cache_root(environ)
    entry = cache / f"playground-{content}"
    with lock(cache / f"{entry.name}.lock", progress):
        if not entry.is_dir():
            unfinished = cache / f"{entry.name}.unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            for wheel in WHEELS:
                progress.phase(f"fetching {wheel.name} from PyPI")
                (unfinished / wheel.name).write_bytes(fetch(wheel))
            unfinished.rename(entry)
    return Assets(pyodide, entry)


def fetch(wheel: Wheel) -> bytes:
    """The content of a wheel. Raises: BuildError if it cannot be fetched, or has another checksum."""
    file = RemoteFile(wheel.url)
    try:
        content = zipfile.ZipFile(file).read(wheel.member) if wheel.member else file.read()
    except (OSError, KeyError, zipfile.BadZipFile, urllib.error.URLError) as error:
        raise BuildError(f"{wheel.url} cannot be fetched: {error}") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != wheel.sha256:
        raise BuildError(f"{wheel.name} is not what was pinned: its sha256 is {digest}")
    return content


class RemoteFile(io.RawIOBase):
    """A file behind a URL of which only the parts are fetched that are read: 3 MB of 106 for NumPy."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._position = 0
        self._size: int | None = None

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._length()}[whence]
        self._position = max(start + offset, 0)
        return self._position

    def read(self, size: int = -1) -> bytes:
        end = self._length() if size < 0 else min(self._position + size, self._length())
        if self._position >= end:
            return b""
        request = urllib.request.Request(self._url, headers={"Range": f"bytes={self._position}-{end - 1}"})
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            # A server that does not know ranges sends everything.
            skip_bytes = self._position if answer.status == 200 else 0
            content: bytes = answer.read()[skip_bytes : skip_bytes + end - self._position]
        if len(content) != end - self._position:
            raise OSError(f"{len(content)} bytes came, not {end - self._position}")
        self._position = end
        return content

    def _length(self) -> int:
        if self._size is None:
            request = urllib.request.Request(self._url, method="HEAD")
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                self._size = int(answer.headers["Content-Length"])
        return self._size
