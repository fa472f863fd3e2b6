"""The archive that krew installs, and the manifest that names it."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path

import pytest
import yaml

import podium
from release.krew import krew_manifest, plugin_archive
from release.single_file import Target

LINUX = Target("linux", "amd64", "x86_64-manylinux_2_28")


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    command, licence = tmp_path / "podium-linux-amd64.pyz", tmp_path / "LICENSE"
    command.write_bytes(b"#!/usr/bin/env python3\n")
    licence.write_text("Apache-2.0\n")
    return plugin_archive(command, licence)


def test_the_archive_has_the_command_and_the_licence_and_is_reproducible(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as tar:
        assert [(member.name, member.mode, member.mtime) for member in tar] == [
            ("kubectl-podium", 0o755, 1700000000),
            ("LICENSE", 0o644, 1700000000),
        ]
    content = archive.read_bytes()
    assert plugin_archive(tmp_path / "podium-linux-amd64.pyz", tmp_path / "LICENSE").read_bytes() == content


def test_the_manifest_names_the_files_of_the_archive(archive: Path) -> None:
    manifest = yaml.safe_load(krew_manifest({LINUX: archive}, "https://example.com/podium"))
    assert (manifest["kind"], manifest["metadata"]["name"]) == ("Plugin", "podium")
    assert manifest["spec"]["version"] == f"v{podium.__version__}"
    [platform] = manifest["spec"]["platforms"]
    assert platform["selector"] == {"matchLabels": {"os": "linux", "arch": "amd64"}}
    assert platform["uri"] == f"https://example.com/podium/v{podium.__version__}/{archive.name}"
    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    with tarfile.open(archive) as tar:
        assert {platform["bin"], *(file["from"] for file in platform["files"])} == set(tar.getnames())
