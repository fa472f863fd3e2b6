from __future__ import annotations

import errno
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest

from podium.lib import private_file as module
from podium.lib.private_file import private_file


def no_directory() -> str:
    raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in []")


def forbidden(*_: Any) -> int:
    raise PermissionError(errno.EPERM, "Operation not permitted")


def test_the_content_is_there_while_the_block_lasts() -> None:
    with private_file(b"key") as path:
        assert Path(path).read_bytes() == b"key"
    assert not Path(path).exists()


def test_no_directory_is_needed_where_there_are_files_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_get_default_tempdir", no_directory)
    with private_file(b"key") as path:
        assert Path(path).read_bytes() == b"key"


def test_a_temporary_file_is_its_owners_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "memfd_create", forbidden)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with private_file(b"key") as path:
        assert Path(path).read_bytes() == b"key"
        assert Path(path).parent == tmp_path
        assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == []


def test_shared_memory_stands_in_for_a_temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "memfd_create", forbidden)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_get_default_tempdir", no_directory)
    monkeypatch.setattr(module, "SHARED_MEMORY", str(tmp_path))
    with private_file(b"key") as path:
        assert Path(path).read_bytes() == b"key"
    monkeypatch.setattr(module, "SHARED_MEMORY", str(tmp_path / "absent"))
    with (
        pytest.raises(OSError, match=r"no file in memory, no temporary directory and no .*absent"),
        private_file(b"key"),
    ):
        pass
