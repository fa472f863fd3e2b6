"""What a release contains that others wrote, and under which licences (CycloneDX)."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import podium


def software_bill(bill: Path, lock: Path, wheels: Path, folder: Path) -> None:
    """Write the SBOM of podium and the locked packages, as installed on this machine.

    Args:
        lock: the packages with versions and hashes.
        wheels: the folder with podium's own wheel.
        folder: a scratch folder.
    """
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python, "--no-deps"]
    subprocess.run([*install, "--require-hashes", "--requirement", lock], check=True)
    # Its code unpacks the single file.
    shiv = ["--require-hashes", "--constraints", "requirements/release.lock", f"shiv=={version('shiv')}"]
    subprocess.run([*install, *shiv], cwd=Path(__file__).parents[1], check=True)
    subprocess.run([*install, "--no-index", "--find-links", wheels, f"podium=={podium.__version__}"], check=True)
    describe = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--of", "JSON"]
    subprocess.run([*describe, "--output-file", bill, python], check=True)


def licence_list(bill: Path, listed: Path) -> None:
    """Write a line for each package of the SBOM: name, version, licences."""
    components: list[dict[str, Any]] = json.loads(bill.read_text())["components"]
    lines = sorted(f"{each['name']} {each['version']}: {_licences(each)}" for each in components)
    listed.write_text("\n".join(lines) + "\n")


def _licences(component: dict[str, Any]) -> str:
    known: list[str] = []
    for each in component.get("licenses", ()):
        licence = each.get("license", {})
        known.append(each.get("expression") or licence.get("id") or licence.get("name") or "unnamed")
    return ", ".join(dict.fromkeys(known)) or "not stated"
