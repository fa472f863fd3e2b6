from __future__ import annotations

import importlib
import importlib.util
import py_compile
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from podium.plugins.loading import trusted_import
from podium.plugins.loading.discovery import DiscoveryError, load

GOOD = """
from podium.framework import ScorePlugin


class Flat(ScorePlugin):
    def score(self, state, pod, node):
        return 1
"""
EVIL = "import sys; sys.has_run_evil = True\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a package of plugins that is not installed, but found."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delattr(sys, "has_run_evil", raising=False)
    folder = tmp_path / "of_mine"
    folder.mkdir(mode=0o755)
    (folder / "__init__.py").write_text("")
    (folder / "flat.py").write_text(GOOD)
    yield folder
    monkeypatch.setattr(trusted_import._finder, "_packages", set())
    for name in [name for name in sys.modules if name.partition(".")[0] in ("of_mine", "helper")]:
        del sys.modules[name]


def plant(source: Path) -> None:
    """Bytecode that Python believes without a look at the source."""
    text_file = source.with_name("planted.txt")
    text_file.write_text(EVIL)
    cache_file = importlib.util.cache_from_source(str(source))
    py_compile.compile(str(text_file), cache_file, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    text_file.unlink()


def test_bytecode_beside_a_plugins_file_is_not_run(package: Path) -> None:
    plant(package / "flat.py")
    assert load(f"{package / 'flat.py'}:Flat").name == "Flat"
    assert not hasattr(sys, "has_run_evil")


@pytest.mark.parametrize("planted", ["__init__.py", "flat.py"])
def test_bytecode_in_a_plugins_package_is_not_run(package: Path, planted: str) -> None:
    plant(package / planted)
    assert load("of_mine.flat:Flat").name == "Flat"
    assert not hasattr(sys, "has_run_evil")


def test_bytecode_of_what_a_plugins_file_imports_is_not_run(package: Path) -> None:
    (package.parent / "helper.py").write_text("")
    plant(package.parent / "helper.py")
    (package / "flat.py").write_text("import helper\n" + GOOD)
    assert load(f"{package / 'flat.py'}:Flat").name == "Flat"
    assert not hasattr(sys, "has_run_evil")


@pytest.mark.parametrize("reference", ["of_mine.flat:Flat", "of_mine:Flat"])
def test_a_submodule_that_others_can_write_is_not_run(package: Path, reference: str) -> None:
    (package / "__init__.py").write_text("from of_mine.flat import Flat\n")
    (package / "flat.py").write_text("from of_mine import helper\n" + GOOD)
    helper = package / "helper.py"
    helper.write_text(EVIL)
    helper.chmod(0o666)
    with pytest.raises(DiscoveryError, match=f"others could have changed it: {helper} can be written by everybody"):
        load(reference)
    assert not hasattr(sys, "has_run_evil")


def test_a_submodule_in_a_folder_that_others_can_write_is_not_run(package: Path) -> None:
    folder = package / "inner"
    folder.mkdir()
    (folder / "flat.py").write_text(EVIL + GOOD)
    folder.chmod(0o777)
    with pytest.raises(DiscoveryError, match=f"{folder} can be written by everybody"):
        load("of_mine.inner.flat:Flat")
    assert not hasattr(sys, "has_run_evil")


def test_a_module_that_a_plugins_file_imports_must_be_trusted_too(package: Path) -> None:
    helper = package.parent / "helper.py"
    helper.write_text(EVIL)
    helper.chmod(0o666)
    (package / "flat.py").write_text("import helper\n" + GOOD)
    with pytest.raises(DiscoveryError, match=f"{helper} can be written by everybody"):
        load(f"{package / 'flat.py'}:Flat")
    assert not hasattr(sys, "has_run_evil")


def test_a_submodule_that_is_imported_later_must_be_trusted_too(package: Path) -> None:
    load("of_mine.flat:Flat")
    late = package / "late.py"
    late.write_text(EVIL)
    late.chmod(0o666)
    with pytest.raises(ImportError, match=f"{late} can be written by everybody"):
        importlib.import_module("of_mine.late")
    assert not hasattr(sys, "has_run_evil")


def test_a_plugin_may_come_in_an_archive_that_only_its_owner_can_write(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = package.parent / "plugins.zip"
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("helper/__init__.py", "")
        content.writestr("helper/flat.py", GOOD)
    monkeypatch.syspath_prepend(str(archive))
    assert load("helper.flat:Flat").name == "Flat"
    for name in ("helper", "helper.flat"):
        del sys.modules[name]
    archive.chmod(0o666)
    with pytest.raises(DiscoveryError, match=f"{archive} can be written by everybody"):
        load("helper.flat:Flat")
