"""`podium release verify`."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from podium.cli.exit_codes import EXIT_NO
from podium.cli.main import main
from podium.lib.provenance import PREDICATE_TYPE, STATEMENT_TYPE, envelope

KEY = Ed25519PrivateKey.generate()


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "key.pem"
    file.write_bytes(KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return file


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """Two files and their provenance."""
    folder = tmp_path / "dist"
    folder.mkdir()
    for name in ("podium.whl", "podium.tar.gz"):
        (folder / name).write_text(name)
    sign(folder)
    return folder


def sign(folder: Path, *names: str) -> None:
    """Write the provenance of the files in a folder, and of files that have these names."""
    subjects = [
        {"name": file.name, "digest": {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()}}
        for file in folder.iterdir()
    ]
    subjects += [{"name": name, "digest": {"sha256": "00"}} for name in names]
    statement = {"_type": STATEMENT_TYPE, "subject": subjects, "predicateType": PREDICATE_TYPE, "predicate": {}}
    (folder / "podium.intoto.json").write_bytes(envelope(statement, [KEY]))


def verify(folder: Path, key: Path) -> Result:
    return CliRunner().invoke(main, ["release", "verify", str(folder), "--key", str(key)])


def test_files_as_published_are_accepted(release: Path, key_file: Path) -> None:
    result = verify(release, key_file)
    assert (result.exit_code, result.output) == (0, f"2 files as published, signed with {key_file}\n")


def test_the_files_and_their_digests_are_shown_as_json(release: Path, key_file: Path) -> None:
    arguments = ["release", "verify", str(release), "--key", str(key_file), "-o", "json"]
    answer = json.loads(CliRunner().invoke(main, arguments).output)
    assert answer["files"]["podium.whl"] == hashlib.sha256(b"podium.whl").hexdigest()
    assert answer["key"] == str(key_file)


def test_every_file_that_differs_is_named(release: Path, key_file: Path) -> None:
    (release / "podium.whl").write_text("podium.whk")
    (release / "podium.tar.gz").unlink()
    (release / "more").touch()
    result = verify(release, key_file)
    assert result.exit_code == EXIT_NO
    assert result.stderr == (
        "Error: more: does not belong to the release\npodium.tar.gz: is missing\npodium.whl: was changed\n"
    )


def test_a_folder_in_the_place_of_a_file_is_refused(release: Path, key_file: Path) -> None:
    (release / "podium.whl").unlink()
    (release / "podium.whl").mkdir()
    assert verify(release, key_file).stderr == "Error: podium.whl: is not a file\n"


def test_a_name_outside_of_the_folder_is_missing(release: Path, key_file: Path) -> None:
    (release / "podium.intoto.json").unlink()
    sign(release, "../key.pem")
    assert verify(release, key_file).stderr == "Error: ../key.pem: is missing\n"


def test_a_provenance_by_somebody_else_is_refused(release: Path, key_file: Path) -> None:
    key = Ed25519PrivateKey.generate().public_key()
    key_file.write_bytes(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    assert "podium.intoto.json: it has no signature by this key" in verify(release, key_file).stderr


@pytest.mark.parametrize("count", [0, 2])
def test_one_provenance_is_needed(release: Path, key_file: Path, count: int) -> None:
    (release / "podium.intoto.json").unlink()
    for number in range(count):
        (release / f"{number}.intoto.json").touch()
    assert f"has {count} files *.intoto.json, and needs one" in verify(release, key_file).stderr


def test_a_key_that_is_none_is_named(release: Path, key_file: Path) -> None:
    key_file.write_text("ssh-ed25519 AAAA")
    assert verify(release, key_file).stderr.startswith(f"Error: {key_file}: not a public key in PEM")
