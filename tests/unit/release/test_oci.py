"""Layouts of files that registries and container tools read."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from release.archives import Member, compress, files_below, tar
from release.oci import MANIFEST, ImageLayer, Layout, digest


@pytest.fixture(autouse=True)
def time_of_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


def contents(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as members:
        files = {member.name: members.extractfile(member) for member in members if member.isfile()}
        return {name: file.read() for name, file in files.items() if file is not None}


def test_each_blob_lies_below_its_digest_and_the_index_names_the_manifest(tmp_path: Path) -> None:
    layout = Layout()
    config, layer = layout.add_json({}, "config"), layout.add(b"content", "layer")
    layout.write(tmp_path / "layout.tar", {"1.0": layout.add_manifest(config, [layer], {"a": "b"})})
    files = contents(tmp_path / "layout.tar")
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    blobs = {name: content for name, content in files.items() if name.startswith("blobs/")}
    assert {f"blobs/sha256/{hashlib.sha256(content).hexdigest()}" for content in blobs.values()} == blobs.keys()
    (entry,) = json.loads(files["index.json"])["manifests"]
    assert entry["annotations"] == {"org.opencontainers.image.ref.name": "1.0"}
    manifest: dict[str, Any] = json.loads(blobs[f"blobs/{entry['digest'].replace(':', '/')}"])
    assert (manifest["mediaType"], manifest["layers"], manifest["annotations"]) == (MANIFEST, [layer], {"a": "b"})


def test_an_image_has_a_full_name_for_containerd_beside_its_tag(tmp_path: Path) -> None:
    layout = Layout()
    entry = layout.add_json({}, "index")
    layout.write(tmp_path / "layout.tar", {"1.0": entry, "2.0": entry}, {"1.0": "docker.io/library/a:1.0"})
    full_entry, tagged_entry = json.loads(contents(tmp_path / "layout.tar")["index.json"])["manifests"]
    assert full_entry["annotations"] == {
        "org.opencontainers.image.ref.name": "1.0",
        "io.containerd.image.name": "docker.io/library/a:1.0",
    }
    assert tagged_entry["annotations"] == {"org.opencontainers.image.ref.name": "2.0"}


def test_a_layer_is_known_by_the_digest_of_what_is_compressed() -> None:
    members = [Member("a", None, 0o755), Member("a/b", b"x"), Member("a/c", None, 0o777, "b")]
    layer = ImageLayer(members)
    assert (layer.diff_id, layer.compressed) == (digest(tar(members)), compress(tar(members)))


def test_an_archive_of_a_folder_does_not_depend_on_who_unpacked_it(tmp_path: Path) -> None:
    for name, umask_mode in (("one", 0o600), ("two", 0o664)):
        folder = tmp_path / name / "sub"
        folder.mkdir(parents=True)
        (folder / "file").write_text("x")
        (folder / "file").chmod(umask_mode)
        (folder / "run").touch(0o700)
        (folder / "link").symlink_to("file")
    assert tar(files_below(tmp_path / "one", "p/")) == tar(files_below(tmp_path / "two", "p/"))
    modes = {member.name: member.mode for member in files_below(tmp_path / "one", "p/")}
    assert modes == {"p/sub": 0o755, "p/sub/file": 0o644, "p/sub/link": 0o777, "p/sub/run": 0o755}
