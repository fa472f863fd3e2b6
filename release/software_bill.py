"""What a release contains that others wrote, and under which licences (CycloneDX)."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import podium
from release.debian import DebianPackage


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


def image_bill(bill: Path, python_bill: Path, packages: list[DebianPackage]) -> None:
    """Write the SBOM of the image: the packages of the other one without what unpacks single files, and Debian's."""
    document = json.loads(python_bill.read_text())
    document["components"] = [component for component in document["components"] if component["name"] != "shiv"]
    document["dependencies"] = [entry for entry in document["dependencies"] if not entry["ref"].startswith("shiv==")]
    document["components"] += [
        {
            "type": "library",
            "bom-ref": package.purl,
            "name": package.name,
            "version": package.version,
            "purl": package.purl,
            "hashes": [{"alg": "SHA-256", "content": package.sha256}],
        }
        for package in {package.purl: package for package in packages}.values()
    ]
    bill.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")


def licence_list(bill: Path, listed: Path) -> None:
    """Write a line for each package of the SBOM: name, version, licences."""
    components: list[dict[str, Any]] = json.loads(bill.read_text())["components"]
    lines = sorted(f"{entry['name']} {entry['version']}: {_licences(entry)}" for entry in components)
    listed.write_text("\n".join(lines) + "\n")


def _licences(component: dict[str, Any]) -> str:
    names: list[str] = []
    for entry in component.get("licenses", ()):
        licence = entry.get("license", {})
        names.append(entry.get("expression") or licence.get("id") or licence.get("name") or "unnamed")
    return ", ".join(dict.fromkeys(names)) or "not stated"
