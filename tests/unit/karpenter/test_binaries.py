from pathlib import Path

import pytest

from tests.control_plane import catalogue
from tests.karpenter import binaries
from tests.karpenter.binaries import PLANNER, RECORDER, recipe, version


def test_the_version_is_read_from_go_mod_which_says_what_go_it_needs() -> None:
    assert version() == "1.15.0"
    assert recipe().key.startswith("karpenter-planner-v1.15.0-")
    assert catalogue.required_go(recipe().module) == (1, 26, 9)


@pytest.mark.parametrize("program", [PLANNER, RECORDER])
def test_our_source_and_the_modules_decide_on_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    first_key = recipe(program).key
    files = binaries._MODULE.glob(f"{program}/*.go")
    for source in ("go.mod", "go.sum", *(f"{program}/{file.name}" for file in files)):
        copy_file = tmp_path / source
        copy_file.parent.mkdir(exist_ok=True)
        copy_file.write_bytes((binaries._MODULE / source).read_bytes())
    monkeypatch.setattr(binaries, "_MODULE", tmp_path)
    assert recipe(program).key == first_key
    (tmp_path / program / "more.go").write_text("package main\n")
    assert recipe(program).key != first_key
