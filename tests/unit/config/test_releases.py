import re
from pathlib import Path

import pytest

import podium
from podium.config.releases import NEWEST, RELEASES, release_of_server
from podium.objects.resource_types import ALL

PODIUM = Path(podium.__file__).parent


@pytest.mark.parametrize(
    ("major", "minor", "release"),
    [
        ("1", "36", "1.36"),
        ("1", "37", "1.37"),
        ("1", "37+", "1.37"),
        ("1", "99", "1.37"),
        ("2", "0", "1.37"),
        ("1", "35", "1.36"),
        ("1", "9", "1.36"),
    ],
)
def test_server_gets_the_newest_release_that_is_not_newer(major: str, minor: str, release: str) -> None:
    assert release_of_server(major, minor) is RELEASES[release]


def test_releases_are_ordered_and_the_newest_is_one_of_them() -> None:
    assert list(RELEASES) == sorted(RELEASES)
    assert RELEASES[NEWEST.minor] is NEWEST


def test_gates_of_a_plugin_exist_in_every_release() -> None:
    for release in RELEASES.values():
        assert {row.gate for row in release.plugins.values() if row.gate} <= release.gates.keys()


def test_paths_of_older_versions_are_those_of_resources_that_podium_knows() -> None:
    for release in RELEASES.values():
        for path, older_path in release.paths.items():
            (resource,) = (resource for resource in ALL if resource.path == path)
            assert older_path.rpartition("/")[2] == resource.plural
    assert not NEWEST.paths


def test_no_other_module_names_a_minor_but_for_its_sources() -> None:
    strays = [
        f"{path}: {line.strip()}"
        for path in sorted(PODIUM.rglob("*.py"))
        if path.name != "releases.py" or path.parent.name != "config"
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"1\.3[67]", line) and not line.lstrip().startswith("Source:")
    ]
    assert strays == []
