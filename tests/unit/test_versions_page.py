"""The pages of policies say what the code and the tests hold."""

from __future__ import annotations

import re
from pathlib import Path

import podium
from podium.config.releases import RELEASES
from tests.skew.releases import MINORS

ROOT = Path(__file__).parents[2]
VERSIONS = (ROOT / "docs/versions.md").read_text()


def test_the_supported_minors_are_those_that_are_decided_as_and_tested() -> None:
    rows = re.findall(r"^\| ([\d., ]+) \| (?:kube-scheduler )?([\d.]+)", VERSIONS, re.MULTILINE)
    minors = [minor for names, _ in rows for minor in names.split(", ")]
    assert sorted(minors) == sorted(MINORS)
    assert {version.removesuffix(".2") for _, version in rows} == set(RELEASES)


def test_the_readme_says_which_version_and_state_this_is() -> None:
    readme = (ROOT / "README.md").read_text()
    version = ".".join(podium.__version__.split(".")[:2])
    assert f"Version {version} is alpha" in readme
    assert "Development Status :: 3 - Alpha" in (ROOT / "pyproject.toml").read_text()
