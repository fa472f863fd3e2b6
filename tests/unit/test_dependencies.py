"""What is installed is what was locked: exact versions, each with the hashes of its files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = ("runtime", "dev", "docs")
_PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)", re.MULTILINE)


def pins(name: str) -> dict[str, str]:
    text = (ROOT / "requirements" / f"{name}.lock").read_text()
    return {_normal(pin[1]): pin[2] for pin in _PIN.finditer(text)}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_package_is_pinned_and_has_hashes(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.lock").read_text()
    entries = [entry for entry in re.split(r"\n(?=\S)", text) if entry.strip() and not entry.startswith("#")]
    assert len(entries) > 10
    for entry in entries:
        assert _PIN.match(entry), entry
        assert "--hash=sha256:" in entry, entry


def test_every_dependency_is_locked_and_development_runs_what_is_shipped() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = {_normal(re.split(r"[><=!;\[ ]", dependency)[0]) for dependency in project["dependencies"]}
    runtime, dev = pins("runtime"), pins("dev")
    assert requirements <= runtime.keys()
    assert {name: dev.get(name) for name in runtime} == runtime


def test_what_builds_the_documentation_changes_nothing_that_tests_run_on() -> None:
    dev, docs = pins("dev"), pins("docs")
    assert {name: docs[name] for name in dev.keys() & docs.keys()} == {
        name: dev[name] for name in dev.keys() & docs.keys()
    }
