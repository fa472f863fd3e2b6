"""The pages of policies say what the code and the tests hold."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

import podium
from podium.config.releases import RELEASES
from release.changelog import CHANGELOG, UNRELEASED, past_releases
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


def test_the_changelog_has_a_heading_for_what_is_next_and_one_for_each_release() -> None:
    text = CHANGELOG.read_text()
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    releases = past_releases(text)
    assert headings[0] == UNRELEASED
    assert len(headings) == 1 + len(releases)
    assert sorted(releases, key=lambda release: release.numbers, reverse=True) == releases
    assert sorted(releases, key=lambda release: release.date, reverse=True) == releases
    assert tuple(int(number) for number in podium.__version__.split(".")) > releases[0].numbers


def test_the_chart_has_podiums_version() -> None:
    chart = yaml.safe_load((ROOT / "deploy/helm/podium/Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == podium.__version__


def test_no_section_of_the_changelog_is_long() -> None:
    for section in CHANGELOG.read_text().split("\n## ")[2:]:
        assert len(section.split()) <= 700, section.partition("\n")[0]


def headings(page: str) -> set[str]:
    return set(re.findall(r"^#+ (.*)$", (ROOT / page).read_text(), re.MULTILINE))


def test_the_policies_that_users_ask_for_have_their_sections() -> None:
    assert {"Reporting", "Versions that get fixes", "What counts"} <= headings("SECURITY.md")
    assert {"How decisions are made", "Roadmap"} <= headings("CONTRIBUTING.md")
    # The sections of a self-assessment of CNCF's TAG Security.
    assert {"Overview", "Actors", "Actions", "Goals", "Non-goals"} <= headings("docs/threat-model.md")
    assert {"Back to the version before", "If something goes wrong"} <= headings("docs/upgrade.md")


def test_the_security_policy_says_how_long_an_answer_takes() -> None:
    periods = re.findall(r"^- \*\*Within (\d+) (?:working )?days\*\*", (ROOT / "SECURITY.md").read_text(), re.MULTILINE)
    assert [int(days) for days in periods] == [3, 14, 90]


def test_the_table_of_promises_covers_all_that_users_rely_on() -> None:
    table = VERSIONS.split("| interface |")[1]
    rows = re.findall(r"^\| ([^|]+?) \|", table, re.MULTILINE)
    text = " ".join(rows)
    interfaces = (
        "plugin contract",
        "configuration",
        "commands and options",
        "JSON",
        "recordings",
        "metrics",
        "decisions",
    )
    assert not [interface for interface in interfaces if interface not in text]
