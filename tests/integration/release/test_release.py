"""`python -m release` for this kind of machine: what is published, twice to the same bytes."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import subprocess
import sys
from pathlib import Path

import yaml

import podium

ROOT = Path(__file__).parents[3]
TARGETS = {"x86_64": "linux-amd64", "aarch64": "linux-arm64"}
NAME = f"podium-{podium.__version__}"


def plain(name: str) -> str:
    """A distribution's name in the spelling that all of them have in common."""
    return name.lower().replace("_", "-")


def direct_dependencies() -> set[str]:
    """What podium's wheel asks for."""
    (asked,) = re.findall(r"^dependencies = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL)
    return {plain(each) for each in re.findall(r'"([A-Za-z0-9-]+)', asked)}


def test_a_release_is_whole_runs_and_is_the_same_twice(tmp_path: Path) -> None:
    out, target = tmp_path / "dist", TARGETS[platform.machine()]
    build = [sys.executable, "-m", "release", "--target", target, "--twice", "--out", out]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "built twice: the same bytes" in done.stdout

    bill = json.loads((out / f"{NAME}.cdx.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    listed = {plain(each["name"]) for each in bill["components"]}
    assert {"podium", *direct_dependencies()} <= listed
    licences = (out / f"{NAME}-licences.txt").read_text().splitlines()
    assert {plain(line.split()[0]) for line in licences} == listed
    assert [line for line in licences if line.endswith(("unnamed", "not stated"))] == []

    (command,) = out.glob(f"{NAME}-{target}.pyz")
    said = subprocess.run([command, "version", "-o", "json"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(said.stdout)["version"] == podium.__version__
    (plugin,) = yaml.safe_load((out / "podium.krew.yaml").read_text())["spec"]["platforms"]
    archive = out / plugin["uri"].rpartition("/")[2]
    assert plugin["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
