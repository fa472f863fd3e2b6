from pathlib import Path

import pytest

from tests.karmada import binaries
from tests.karmada.binaries import CLIENT, PACKAGES, SERVER, recipe, version


def test_the_version_is_read_from_go_mod_and_names_the_cache_entries() -> None:
    assert version() == "1.18.2"
    for name in PACKAGES:
        assert recipe(name).key.startswith(f"karmada-{name}-v1.18.2-")


def test_our_source_decides_on_the_client_and_the_modules_on_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_keys = {name: recipe(name).key for name in PACKAGES}
    for source in ("go.mod", "go.sum", *(f"client/{file.name}" for file in binaries._MODULE.glob("client/*.go"))):
        copy_file = tmp_path / source
        copy_file.parent.mkdir(exist_ok=True)
        copy_file.write_bytes((binaries._MODULE / source).read_bytes())
    monkeypatch.setattr(binaries, "_MODULE", tmp_path)
    assert {name: recipe(name).key for name in PACKAGES} == first_keys

    (tmp_path / "client" / "more.go").write_text("package main\n")
    assert recipe(CLIENT).key != first_keys[CLIENT]
    assert recipe(SERVER).key == first_keys[SERVER]
    (tmp_path / "go.sum").write_text("")
    assert recipe(SERVER).key != first_keys[SERVER]
