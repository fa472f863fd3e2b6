"""`--html` of a file that cannot be written ends the command before it works."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.commands import run
from tests.unit.cli.test_diff import write_recording


@pytest.fixture
def recordings(tmp_path: Path) -> tuple[Path, Path]:
    return write_recording(tmp_path / "a", "n1"), write_recording(tmp_path / "b", "n2")


def test_page_is_written(recordings: tuple[Path, Path], tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text("an older and longer page" * 10_000)
    assert run("diff", *recordings, "--html", file).exit_code == 3
    assert file.read_text().startswith("<!doctype html>")
    assert file.read_text().endswith("</html>\n")


def test_file_that_cannot_be_written_is_named_first(tmp_path: Path) -> None:
    for file, why in ((tmp_path, "Is a directory"), (tmp_path / "no" / "page.html", "No such file or directory")):
        result = run("diff", tmp_path / "nothing", tmp_path / "nothing", "--html", file)
        assert result.exit_code == 1
        assert result.output == f"Error: --html: {file}: {why}\n"


def test_no_empty_file_is_left_behind(recordings: tuple[Path, Path], tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    assert run("diff", recordings[0], tmp_path / "nothing", "--html", file).exit_code == 1
    assert not file.exists()
    file.touch()
    assert run("diff", recordings[0], tmp_path / "nothing", "--html", file).exit_code == 1
    assert file.exists()


def test_page_that_does_not_fit_on_the_disk_is_an_error(recordings: tuple[Path, Path]) -> None:
    result = run("diff", *recordings, "--html", "/dev/full")
    assert result.exit_code == 1
    assert "Error: --html: /dev/full: No space left on device\n" in result.output
