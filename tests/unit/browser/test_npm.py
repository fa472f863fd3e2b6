from __future__ import annotations

import base64
import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from tests.browser.npm import Package, obtain
from tests.control_plane.builder import BuildError
from tests.control_plane.progress import Progress

WRONG = base64.b64encode(b"?" * 64).decode()


def _archive() -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        file = tarfile.TarInfo("package/index.js")
        file.size = 4
        archive.addfile(file, io.BytesIO(b"1+1\n"))
    return content.getvalue()


def _fake_npm(folder: Path, content: bytes) -> None:
    """Packs the same whatever it is asked for."""
    (folder / "content").write_bytes(content)
    for name, script in (("npm", f'#!/bin/sh\ncp "{folder}/content" packed.tgz\n'), ("node", "#!/bin/sh\n")):
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return folder


def _progress() -> Progress:
    return Progress(stream=io.StringIO())


def test_a_package_is_fetched_once(tmp_path: Path, on_path: Path) -> None:
    content = _archive()
    _fake_npm(on_path, content)
    package = Package("left", "1.0.0", base64.b64encode(hashlib.sha512(content).digest()).decode())
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}

    first = obtain(package, _progress(), environ)
    (on_path / "npm").write_text("#!/bin/sh\nexit 1\n")

    assert (first / "index.js").read_text() == "1+1\n"
    assert obtain(package, _progress(), environ) == first


def test_another_content_than_the_pinned_one_is_refused_and_not_kept(tmp_path: Path, on_path: Path) -> None:
    _fake_npm(on_path, _archive())
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    for _ in range(2):
        with pytest.raises(BuildError, match=r"^left 1\.0\.0 is not what was pinned: its sha512 is "):
            obtain(Package("left", "1.0.0", WRONG), _progress(), environ)


def test_what_npm_says_last_is_the_reason(tmp_path: Path, on_path: Path) -> None:
    _fake_npm(on_path, b"")
    (on_path / "npm").write_text("#!/bin/sh\necho first >&2; echo no such package >&2; exit 1\n")
    with pytest.raises(BuildError, match=r"^npm pack left@1\.0\.0 failed: no such package$"):
        obtain(Package("left", "1.0.0", WRONG), _progress(), {"XDG_CACHE_HOME": str(tmp_path / "cache")})
