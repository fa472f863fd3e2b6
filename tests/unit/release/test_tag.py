"""The version of a release is that of its tag."""

from __future__ import annotations

from pathlib import Path

import pytest

import podium
from release import __main__ as release


@pytest.fixture
def changelog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "CHANGELOG.md"
    file.write_text(f"## Unreleased\n\n## {podium.__version__} (2026-11-28, 0123abcd)\n")
    monkeypatch.setattr(release, "CHANGELOG", file)
    return file


def tag(monkeypatch: pytest.MonkeyPatch, tags: str) -> str:
    monkeypatch.setattr(release, "_git", lambda *_: tags)
    return release._tag_of_this_commit()


def test_a_commit_with_the_tag_of_the_version_is_a_release(changelog: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tag(monkeypatch, f"v{podium.__version__}") == f"v{podium.__version__}"
    assert tag(monkeypatch, "") == ""


@pytest.mark.parametrize("tags", ["v0.0.1", f"v{podium.__version__}\nv0.0.1"])
def test_the_tag_of_another_version_is_refused(changelog: Path, monkeypatch: pytest.MonkeyPatch, tags: str) -> None:
    with pytest.raises(SystemExit, match=r"this commit is tagged .*v0\.0\.1, and podium\.__version__ is"):
        tag(monkeypatch, tags)


def test_a_release_that_the_changelog_does_not_have_is_refused(
    changelog: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changelog.write_text("## Unreleased\n")
    with pytest.raises(SystemExit, match=r"CHANGELOG\.md has no heading for"):
        tag(monkeypatch, f"v{podium.__version__}")
