"""`python -m release`: build everything that is published, into `dist/`.

The same commit gives the same bytes, on any machine and in any folder; `--twice` proves it.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

import podium
from release.krew import krew_manifest, plugin_archive
from release.single_file import PYTHONS, Target, build_single_file
from release.software_bill import licence_list, software_bill

_ROOT = Path(__file__).resolve().parents[1]
_TARGETS = {
    "linux-amd64": Target("linux", "amd64", "x86_64-manylinux_2_28"),
    "linux-arm64": Target("linux", "arm64", "aarch64-manylinux_2_28"),
    "darwin-arm64": Target("darwin", "arm64", "aarch64-apple-darwin"),
}


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=_ROOT / "dist", show_default="dist/")
@click.option("--target", "targets", type=click.Choice(list(_TARGETS)), multiple=True, help="All, if none is named.")
@click.option("--url", default="https://example.com/podium", show_default=True, help="Where the archives will be.")
@click.option("--twice", is_flag=True, help="Build everything a second time, and fail if a byte differs.")
def main(out: Path, targets: tuple[str, ...], url: str, twice: bool) -> None:
    """Build the wheel, the source distribution, single-file commands, the krew manifest, SBOM and licences."""
    chosen = [_TARGETS[each] for each in targets or _TARGETS]
    _build(out, chosen, url)
    if twice:
        with tempfile.TemporaryDirectory() as again:
            _build(Path(again), chosen, url)
            names = sorted(each.name for each in out.iterdir())
            _, different, unreadable = filecmp.cmpfiles(out, again, names, shallow=False)
            if different or unreadable:
                sys.exit(f"not reproducible: {', '.join([*different, *unreadable])}")
        click.echo("built twice: the same bytes")


def _build(out: Path, targets: list[Target], url: str) -> None:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    # Archives carry the time of the commit, not that of the build.
    os.environ["SOURCE_DATE_EPOCH"] = _git("log", "-1", "--format=%ct")
    _step("wheel and source distribution")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", out], cwd=_ROOT, check=True, stderr=subprocess.DEVNULL
    )
    (wheel,) = out.glob("*.whl")
    with tempfile.TemporaryDirectory() as folder:
        lock = Path(folder) / "runtime.txt"
        _pin(lock)
        _step("SBOM and licences")
        bill = out / f"podium-{podium.__version__}.cdx.json"
        software_bill(bill, lock, out, Path(folder))
        licence_list(bill, out / f"podium-{podium.__version__}-licences.txt")
        archives: dict[Target, Path] = {}
        for target in targets:
            _step(f"single file for {target.system}/{target.machine}")
            command = out / f"podium-{podium.__version__}-{target.system}-{target.machine}.pyz"
            build_single_file(command, target, lock, wheel, Path(folder) / target.name)
            archives[target] = plugin_archive(command, _ROOT / "LICENSE")
    _step("krew manifest")
    (out / "podium.krew.yaml").write_text(krew_manifest(archives, url))
    for each in sorted(out.iterdir()):
        click.echo(f"  {each.stat().st_size / 1e6:7.2f} MB  {each.name}")


def _pin(lock: Path) -> None:
    """Write the packages that podium runs with: those of `runtime.lock` without what only its build needs.

    All versions of Python share the modules of the single file, so a package has one version: the oldest Python's.
    """
    oldest = lock.with_suffix(".oldest")
    _resolve(Path("requirements/runtime.lock"), oldest)
    _resolve(oldest, lock, "--universal", "--generate-hashes")


def _resolve(constraints: Path, lock: Path, *more: str) -> None:
    resolve = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-header", "--python-version", PYTHONS[0]]
    resolve += ["pyproject.toml", "--constraints", str(constraints), "--output-file", str(lock), *more]
    if subprocess.run(resolve, cwd=_ROOT, check=False).returncode:
        sys.exit("the locked packages could not be resolved")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _step(what: str) -> None:
    click.echo(f"== {what}")


if __name__ == "__main__":
    main()
