"""What people install: the wheel, built from just what the Dockerfile copies, somewhere else than this repository."""

from __future__ import annotations

import json
import os
import re
import shutil
import site
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from podium.cli.main import main
from tests.integration.cli.conftest import ROOT
from tests.patience import PATIENCE_S

_COMMIT = "0123456789abcdef0123456789abcdef01234567"
_CLUSTER = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "4", pods: "110"}}}
"""
_POD = (
    "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: a, resources: {requests: {cpu: 1}}}]}}"
)

Installed = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """podium's wheel."""
    source = tmp_path_factory.mktemp("source")
    for line in (ROOT / "deploy" / "Dockerfile").read_text().splitlines():
        match line.split():
            case ["COPY", "podium", "podium"]:
                shutil.copytree(ROOT / "podium", source / "podium", ignore=shutil.ignore_patterns("__pycache__"))
            case ["COPY", *files, "./"]:
                for each in files:
                    shutil.copy(ROOT / each, source)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", source / "dist"]
    subprocess.run(build, cwd=source, env={**os.environ, "PODIUM_COMMIT": _COMMIT}, check=True, capture_output=True)
    (built,) = (source / "dist").iterdir()
    return built


@pytest.fixture(scope="module")
def environment_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel."""
    folder = tmp_path_factory.mktemp("installed") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    install = [sys.executable, "-m", "uv", "pip", "install", "-q", "--offline", "--python", folder, "--no-deps", wheel]
    subprocess.run(install, check=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    # The libraries are those of this environment; podium itself, installed in place there, is not found by this.
    (packages / "libraries.pth").write_text("\n".join(site.getsitepackages()))
    return folder


@pytest.fixture
def installed(environment_folder: Path, tmp_path: Path) -> Installed:
    """Run an installed command to its end, in an empty folder."""
    home = tmp_path / "home"
    home.mkdir()
    inherited = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "KUBECONFIG")}

    def run(command: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [environment_folder / "bin" / command, *arguments],
            cwd=home,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            env={**inherited, "HOME": str(home), **more},
            check=False,
        )

    return run


def test_every_command_starts(installed: Installed, environment_folder: Path) -> None:
    for each in main.list_commands(click.Context(main)):
        done = installed("podium", each, "--help")
        assert done.returncode == 0, f"{each}: {done.stderr}"
    where = subprocess.run(
        [environment_folder / "bin" / "python", "-c", "import podium; print(podium.__file__)"],
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout).is_relative_to(environment_folder)


def test_it_tells_what_it_was_built_from(installed: Installed) -> None:
    told = json.loads(installed("podium", "version", "-o", "json").stdout)
    assert told["commit"] == _COMMIT
    assert f"podium, version {told['version']}\n" == installed("podium", "--version").stdout


def test_it_has_the_files_of_the_live_page(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    assert {f"podium/daemon/live_page/page.{kind}" for kind in ("html", "js", "css")} <= names


def test_questions_and_the_demo_are_answered(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(_CLUSTER)
    (tmp_path / "pod.yaml").write_text(_POD)
    asked = installed("podium", "evaluate", "-f", "../cluster.yaml", "--pod", "../pod.yaml", "-o", "json")
    assert json.loads(asked.stdout)["feasible"] == ["n1"], asked.stderr
    fits = installed("podium", "estimate", "-f", "../cluster.yaml", "--requests", "cpu=1", "-o", "json")
    assert json.loads(fits.stdout)["replicas"] == 4, fits.stderr
    checked = installed("podium", "config", "check", "../pod.yaml")
    assert checked.returncode == 1
    demo = installed("podium", "demo", "--nodes", "5", "--pods", "5", "-o", "json")
    assert demo.returncode == 0, demo.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options(installed: Installed, shell: str) -> None:
    script = installed("podium", "completion", shell)
    assert script.returncode == 0
    assert f"_PODIUM_COMPLETE={shell}_complete" in script.stdout
    words = {"COMP_WORDS": "podium evaluate --out", "COMP_CWORD": "--out" if shell == "fish" else "2"}
    completed = installed("podium", _PODIUM_COMPLETE=f"{shell}_complete", **words)
    assert "--output" in re.split(r"[,\s]", completed.stdout)
