from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from podium.plugins.loading import file_trust
from podium.plugins.loading.file_trust import distrust_reason


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "plugins"
    directory.mkdir(mode=0o755)
    path = directory / "mine.py"
    path.write_text("x = 1\n")
    path.chmod(0o644)
    yield path
    directory.chmod(0o755)


def test_a_file_that_only_its_owner_can_write_is_trusted(plugin: Path) -> None:
    assert distrust_reason(plugin) is None


@pytest.mark.parametrize(
    ("mode", "words"), [(0o646, "can be written by everybody"), (0o666, "can be written by everybody")]
)
def test_a_file_that_everybody_can_write_is_not(plugin: Path, mode: int, words: str) -> None:
    plugin.chmod(mode)
    assert distrust_reason(plugin) == f"{plugin} {words} (mode {mode:04o}); chmod o-w helps"


def test_a_directory_that_everybody_can_write_is_not(plugin: Path) -> None:
    plugin.parent.chmod(0o777)
    reason = distrust_reason(plugin)
    assert reason is not None
    assert reason.startswith(f"{plugin.parent} can be written by everybody")


def test_the_sticky_bit_keeps_others_from_replacing_a_file(plugin: Path) -> None:
    plugin.parent.chmod(0o1777)
    assert distrust_reason(plugin) is None


def test_a_group_of_others_can_write_it(plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin.chmod(0o664)
    monkeypatch.setattr(os, "getegid", lambda: plugin.stat().st_gid + 1)
    reason = distrust_reason(plugin)
    assert reason is not None
    assert reason.startswith(f"{plugin} can be written by its group")


def test_a_group_of_ones_own_does_no_harm(plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin.chmod(0o664)
    monkeypatch.setattr(os, "getegid", lambda: plugin.stat().st_gid)

    class Group:
        gr_mem = ()

    monkeypatch.setattr(file_trust.grp, "getgrgid", lambda _: Group)
    assert distrust_reason(plugin) is None
    Group.gr_mem = ("somebody",)
    assert distrust_reason(plugin) is not None


def test_a_file_of_another_user_is_not(plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_trust, "_trusted_users", lambda: frozenset({plugin.stat().st_uid + 1}))
    reason = distrust_reason(plugin)
    assert reason is not None
    assert "belongs to another user" in reason


def test_a_link_counts_by_where_it_stands_and_where_it_leads(plugin: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.py"
    link.symlink_to(plugin)
    assert distrust_reason(link) is None
    plugin.parent.chmod(0o777)
    assert distrust_reason(link) is not None
    plugin.parent.chmod(0o755)
    tmp_path.chmod(0o777)
    assert distrust_reason(link) is not None
    tmp_path.chmod(0o700)


def test_what_is_mounted_read_only_nobody_can_change(plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin.parent.chmod(0o777)
    monkeypatch.setattr(file_trust, "_is_read_only", lambda _: True)
    assert distrust_reason(plugin) is None
