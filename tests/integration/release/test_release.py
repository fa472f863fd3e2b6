"""`python -m release` for this kind of machine: what is published, twice to the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import click
import yaml

import podium
from podium.cli.main import main

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
TARGETS = {"x86_64": "linux-amd64", "aarch64": "linux-arm64"}
NAME = f"podium-{podium.__version__}"


def plain(name: str) -> str:
    """A distribution's name in the spelling that all of them have in common."""
    return name.lower().replace("_", "-")


def direct_dependencies() -> set[str]:
    """What podium's wheel asks for."""
    (requirement_text,) = re.findall(
        r"^dependencies = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL
    )
    return {plain(requirement) for requirement in re.findall(r'"([A-Za-z0-9-]+)', requirement_text)}


def bundled_in(command: Path) -> list[str]:
    """Name and version of each package in the single file."""
    with zipfile.ZipFile(command) as packed:
        folders = {re.match(r"site-packages/(.*)-(.*)\.dist-info/", name) for name in packed.namelist()}
    return [f"{plain(folder[1])} {folder[2]}" for folder in folders if folder is not None]


def test_a_release_is_whole_runs_and_is_the_same_twice(tmp_path: Path) -> None:
    out, target = tmp_path / "dist", TARGETS[platform.machine()]
    build = [sys.executable, "-m", "release", "--target", target, "--twice", "--out", out]
    result = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "built twice: the same bytes" in result.stdout

    bill = json.loads((out / f"{NAME}.cdx.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    component_names = {plain(component["name"]) for component in bill["components"]}
    assert {"podium", *direct_dependencies()} <= component_names
    (command,) = out.glob(f"{NAME}-{target}.pyz")
    bundled = bundled_in(command)
    # The code that unpacks the file is shiv's.
    assert sorted(f"{plain(component['name'])} {component['version']}" for component in bill["components"]) == sorted(
        {*bundled, f"shiv {version('shiv')}"}
    )
    licences = (out / f"{NAME}-licences.txt").read_text().splitlines()
    assert {plain(line.split()[0]) for line in licences} == component_names
    assert [line for line in licences if line.endswith(("unnamed", "not stated"))] == []

    environment = {**os.environ, "PYTHONPATH": "", "SHIV_ROOT": str(tmp_path / "unpacked")}

    def output_of(*arguments: str) -> str:
        # An interpreter that has nothing of podium.
        run = [Path(sys.base_prefix, "bin", "python3"), command, *arguments]
        result = subprocess.run(run, cwd=EXAMPLES, env=environment, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        return result.stdout

    assert json.loads(output_of("version", "-o", "json"))["version"] == podium.__version__
    for subcommand in main.list_commands(click.Context(main)):
        output_of(subcommand, "--help")
    shop = ("-f", "clusters/shop.yaml")
    assert "fits after one edit" in output_of("why", "report", "-n", "shop", *shop, "--fix")
    assert "50 more of default/podium-web fit" in output_of("capacity", *shop, "--pod", "pods/web.yaml")
    assert json.loads(output_of("demo", "--nodes", "5", "--pods", "5", "-o", "json"))
    (plugin,) = yaml.safe_load((out / "podium.krew.yaml").read_text())["spec"]["platforms"]
    archive = out / plugin["uri"].rpartition("/")[2]
    assert plugin["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
