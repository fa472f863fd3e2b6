"""`python -m tests.playground.site`: builds the playground, a folder of files that any web server can serve.

What the page consists of is in docs/playground. Added are Pyodide, the wheels that podium needs, and podium's own.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

import click
import yaml

from tests.control_plane.builder import BuildError
from tests.control_plane.progress import Progress
from tests.playground.assets import PYODIDE_FILES, Assets, obtain

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "playground"
_SITE: Final = ROOT / "build" / "playground"
_NOT_OF_THE_PAGE: Final = {".md"}


def build(site: Path, assets: Assets) -> None:
    """Write the site into a folder, which is emptied before. Raises: BuildError."""
    shutil.rmtree(site, ignore_errors=True)
    site.mkdir(parents=True)
    for source in PAGE.iterdir():
        if source.suffix not in _NOT_OF_THE_PAGE:
            shutil.copyfile(source, site / source.name)
    (site / "pyodide").mkdir()
    for name in PYODIDE_FILES:
        shutil.copyfile(assets.pyodide / name, site / "pyodide" / name)
    (site / "wheels").mkdir()
    for wheel in assets.wheels.iterdir():
        shutil.copyfile(wheel, site / "wheels" / wheel.name)
    _write_yaml(site / "wheels")
    _build_podium(site / "wheels")
    wheels = [
        {"name": f"wheels/{wheel.name}", "bytes": wheel.stat().st_size} for wheel in sorted((site / "wheels").iterdir())
    ]
    (site / "assets.json").write_text(json.dumps({"wheels": wheels}))


def _write_yaml(folder: Path) -> None:
    """PyYAML as it is installed here, without what is compiled: it reads the same without libyaml, if slower."""
    with zipfile.ZipFile(folder / f"pyyaml-{yaml.__version__}-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        for source in sorted(Path(yaml.__file__).parent.glob("*.py")):
            wheel.write(source, f"yaml/{source.name}")


def _build_podium(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", directory]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise BuildError(
                f"podium's wheel cannot be built: {(result.stderr.strip() or 'no output').splitlines()[-1]}"
            )
        (wheel,) = Path(directory).glob("*.whl")
        shutil.copyfile(wheel, folder / wheel.name)


def main() -> int:
    progress = Progress(interval_s=3.0)
    try:
        build(_SITE, obtain(progress))
    except BuildError as problem:
        progress.phase(f"not available: {problem}")
        return 1
    total = sum(file.stat().st_size for file in _SITE.rglob("*") if file.is_file())
    click.echo(f"{total / 1e6:.1f} MB in {_SITE.relative_to(ROOT)}; look at it on http://localhost:8000 with")
    click.echo(f"  python3 -m http.server --bind 127.0.0.1 -d {_SITE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
