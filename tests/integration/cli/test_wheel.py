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
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import pytest

from podium.cli.main import main
from podium.sandbox import Sandbox
from tests.control_plane.client import Client
from tests.e2e.cluster import SandboxCluster
from tests.e2e.daemon import Daemon
from tests.integration.cli.conftest import ROOT
from tests.manifests import node, pod
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
                for file in files:
                    shutil.copy(ROOT / file, source)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", source / "dist"]
    subprocess.run(build, cwd=source, env={**os.environ, "PODIUM_COMMIT": _COMMIT}, check=True, capture_output=True)
    (wheel_file,) = (source / "dist").iterdir()
    return wheel_file


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
def run_installed(environment_folder: Path, tmp_path: Path) -> Installed:
    """Run an installed command to its end, in an empty folder."""
    home = tmp_path / "home"
    home.mkdir()
    inherited = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "KUBECONFIG")}

    def run(command: str, *arguments: str, **fields: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [environment_folder / "bin" / command, *arguments],
            cwd=home,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            env={**inherited, "HOME": str(home), **fields},
            check=False,
        )

    return run


def test_every_command_starts(run_installed: Installed, environment_folder: Path) -> None:
    for list_command in main.list_commands(click.Context(main)):
        result = run_installed("podium", list_command, "--help")
        assert result.returncode == 0, f"{list_command}: {result.stderr}"
    where = subprocess.run(
        [environment_folder / "bin" / "python", "-I", "-c", "import podium; print(podium.__file__)"],
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout).is_relative_to(environment_folder)


def test_it_shows_the_commit_it_was_built_from(run_installed: Installed) -> None:
    answer = json.loads(run_installed("podium", "version", "-o", "json").stdout)
    assert answer["commit"] == _COMMIT
    assert f"podium, version {answer['version']}\n" == run_installed("podium", "--version").stdout


def test_it_has_the_files_of_its_pages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    assert {f"podium/daemon/live_page/{name}" for name in ("page.html", "page.js", "page.css", "look.css")} <= names
    assert {f"podium/cli/pages/page.{kind}" for kind in ("js", "css")} <= names


def test_questions_and_the_demo_are_answered(run_installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(_CLUSTER)
    (tmp_path / "pod.yaml").write_text(_POD)
    result = run_installed("podium", "evaluate", "-f", "../cluster.yaml", "--pod", "../pod.yaml", "-o", "json")
    assert json.loads(result.stdout)["feasible"] == ["n1"], result.stderr
    fits = run_installed("podium", "estimate", "-f", "../cluster.yaml", "--requests", "cpu=1", "-o", "json")
    assert json.loads(fits.stdout)["replicas"] == 4, fits.stderr
    checked = run_installed("podium", "config", "check", "../pod.yaml")
    assert checked.returncode == 3
    demo = run_installed("podium", "demo", "--nodes", "5", "--pods", "5", "-o", "json")
    assert demo.returncode == 0, demo.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options(run_installed: Installed, shell: str) -> None:
    script = run_installed("podium", "completion", shell)
    assert script.returncode == 0
    assert f"_PODIUM_COMPLETE={shell}_complete" in script.stdout
    words = {"COMP_WORDS": "podium evaluate --out", "COMP_CWORD": "--out" if shell == "fish" else "2"}
    completed = run_installed("podium", _PODIUM_COMPLETE=f"{shell}_complete", **words)
    assert "--output" in re.split(r"[,\s]", completed.stdout)


@pytest.mark.parametrize(
    ("text", "completion"), [("why -f", "default"), ("estimator serve --kubeconfig-dir", "dirnames")]
)
def test_bash_completes_files_or_directories(
    environment_folder: Path, run_installed: Installed, tmp_path: Path, text: str, completion: str
) -> None:
    words = ["podium", *text.split(), "''"]
    (tmp_path / "complete.sh").write_text(
        f"{run_installed('podium', 'completion', 'bash').stdout}\n"
        f"compopt() {{ echo $2; }}\n"  # it works only while bash completes
        f"COMP_WORDS=({' '.join(words)}) COMP_CWORD={len(words) - 1}\n"
        f"_podium_completion {environment_folder}/bin/podium\n"
    )
    result = subprocess.run(["bash", tmp_path / "complete.sh"], capture_output=True, text=True, check=True)
    assert result.stdout.split() == [completion]


_AS_ROOT = (
    "exec unshare --mount sh -c 'mount -o remount,bind,ro / && shift && exec setpriv --reuid {user} --regid {group} "
    # Others than root may not be able to look at where Python is; the image has none of that.
    '--clear-groups --inh-caps +dac_read_search --ambient-caps +dac_read_search {python} "$@"\' sh "$@"'
)
_AS_ANYBODY = 'shift && exec {python} "$@"'
"""Without rights over the machine the tree cannot be made read-only, so podium is run by the wheel alone."""


@pytest.fixture
def readable_by_all() -> Iterator[Path]:
    """A folder that other users can look into; pytest's own are closed to them."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.mark.anyio
async def test_it_schedules_as_the_images_user_on_a_tree_that_cannot_be_written(
    environment_folder: Path, readable_by_all: Path
) -> None:
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    ((user, group),) = re.findall(r"^USER (\d+):(\d+)$", dockerfile, re.MULTILINE)
    is_root = os.getuid() == 0
    python = environment_folder / "bin" / "python"
    script = (_AS_ROOT if is_root else _AS_ANYBODY).format(user=user, group=group, python=python)
    async with Sandbox() as sandbox, Client(sandbox.url) as admin:
        cluster = SandboxCluster(admin, sandbox.write_kubeconfig(readable_by_all / "kubeconfig"), sandbox)
        daemon = Daemon(readable_by_all, cluster.kubeconfig, through=("sh", "-c", script, "sh"))
        try:
            await daemon.wait_ready()
            assert _user_of(daemon.pid) == (user if is_root else str(os.getuid()))
            assert not is_root or os.statvfs(f"/proc/{daemon.pid}/root/").f_flag & os.ST_RDONLY
            await cluster.create(node("there"), pod("web"))
            assert await cluster.wait_bound(["web"]) == {"web": "there"}
            assert await daemon.stop() == 0
            assert "Traceback" not in daemon.output()
        finally:
            daemon.kill()


def _user_of(pid: int) -> str:
    (user,) = re.findall(r"^Uid:\s+(\d+)\s", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return str(user)
