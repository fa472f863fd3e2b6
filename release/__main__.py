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
from typing import Final

import click

import podium
from podium.lib.provenance import ProvenanceError, read_private_key
from release.attestation import write_provenance
from release.changelog import CHANGELOG, past_releases
from release.chart import write_chart
from release.debian import DebianPackage
from release.image import build_images
from release.krew import krew_manifest, plugin_archive
from release.single_file import PYTHONS, Target, build_single_file
from release.software_bill import image_bill, licence_list, software_bill

_ROOT = Path(__file__).resolve().parents[1]
_TARGETS = {
    "linux-amd64": Target("linux", "amd64", "x86_64-manylinux_2_28"),
    "linux-arm64": Target("linux", "arm64", "aarch64-manylinux_2_28"),
    "darwin-arm64": Target("darwin", "arm64", "aarch64-apple-darwin"),
}


IMAGE_EXTRAS: Final = ("otel", "estimator")
"""Extras that have an image of their own, tagged with the version and the extra."""


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=_ROOT / "dist", show_default="dist/")
@click.option("--target", "targets", type=click.Choice(list(_TARGETS)), multiple=True, help="All, if none is named.")
@click.option(
    "--url", default="", help="Where podium is published; without it, there are no links and no krew manifest."
)
@click.option(
    "--key",
    "key_files",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    multiple=True,
    help="A private key (PEM, Ed25519 or ECDSA) that signs the provenance.",
)
@click.option("--twice", is_flag=True, help="Build everything a second time, and fail if a byte differs.")
def main(out: Path, targets: tuple[str, ...], url: str, key_files: tuple[Path, ...], twice: bool) -> None:
    """Build all that is published: packages, commands in one file, image, chart, SBOM, licences, provenance."""
    try:
        keys = [read_private_key(file.read_bytes()) for file in key_files]
    except ProvenanceError as error:
        raise click.BadParameter(str(error), param_hint="--key") from error
    chosen_targets = [_TARGETS[name] for name in targets or _TARGETS]
    tag = _tag_of_this_commit()
    click.echo(f"== podium {podium.__version__}, {f'tagged {tag}' if tag else 'without a tag: not for publishing'}")
    with tempfile.TemporaryDirectory() as folder:
        debian = Path(folder)
        packages = _build(out, chosen_targets, url, debian)
        if twice:
            with tempfile.TemporaryDirectory() as copy:
                _build(Path(copy), chosen_targets, url, debian)
                names = sorted(file.name for file in out.iterdir())
                _, different, unreadable = filecmp.cmpfiles(out, copy, names, shallow=False)
                if different or unreadable:
                    sys.exit(f"not reproducible: {', '.join([*different, *unreadable])}")
            click.echo("built twice: the same bytes")
    # A signature by ECDSA differs each time, so it comes after the comparison.
    locks = [_ROOT / "requirements" / f"{name}.lock" for name in ("runtime", *IMAGE_EXTRAS, "release")]
    write_provenance(out, keys, url, _git("rev-parse", "HEAD"), locks, packages)
    for file in sorted(out.iterdir()):
        click.echo(f"  {file.stat().st_size / 1e6:7.2f} MB  {file.name}")
    if not url:
        click.echo("without addresses and krew manifest: give --url")
    if not keys:
        click.echo("not signed: give --key")


def _tag_of_this_commit() -> str:
    """Return the tag of this version at this commit, if there is one.

    Raises:
        SystemExit: the commit has the tag of another version, or the changelog does not have the version.
    """
    tags = _git("tag", "--points-at", "HEAD", "--list", "v[0-9]*").split()
    if not tags:
        return ""
    tag = f"v{podium.__version__}"
    if tags != [tag]:
        sys.exit(f"this commit is tagged {', '.join(tags)}, and podium.__version__ is {podium.__version__}")
    if podium.__version__ not in {release.version for release in past_releases(CHANGELOG.read_text())}:
        sys.exit(f"CHANGELOG.md has no heading for {podium.__version__}")
    return tag


def _build(out: Path, targets: list[Target], url: str, debian: Path) -> list[DebianPackage]:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    # Archives carry the time of the commit, not that of the build.
    os.environ["SOURCE_DATE_EPOCH"] = _git("log", "-1", "--format=%ct")
    os.environ["PODIUM_URL"] = url
    _step("wheel and source distribution")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", out], cwd=_ROOT, check=True, stderr=subprocess.DEVNULL
    )
    (wheel,) = out.glob("*.whl")
    name = f"podium-{podium.__version__}"
    with tempfile.TemporaryDirectory() as folder:
        lock = Path(folder) / "runtime.txt"
        _pin(lock)
        _step("SBOM and licences")
        bill = out / f"{name}.cdx.json"
        software_bill(bill, lock, out, Path(folder))
        licence_list(bill, out / f"{name}-licences.txt")
        archives: dict[Target, Path] = {}
        for target in targets:
            _step(f"single file for {target.system}/{target.machine}")
            command = out / f"{name}-{target.system}-{target.machine}.pyz"
            build_single_file(command, target, lock, wheel, Path(folder) / target.name)
            archives[target] = plugin_archive(command, _ROOT / "LICENSE")
        _step("images")
        image_targets = [target for target in targets if target.system == "linux"]
        locks = {podium.__version__: lock}
        bills = {"": bill}
        for extra in IMAGE_EXTRAS:
            locks[f"{podium.__version__}-{extra}"] = extra_lock = Path(folder) / f"{extra}.txt"
            _pin(extra_lock, extra)
            bills[f"-{extra}"] = extra_bill = Path(folder) / f"{extra}.cdx.json"
            software_bill(extra_bill, extra_lock, out, Path(folder) / extra)
        packages = build_images(out / f"{name}-image.oci.tar", image_targets, locks, wheel, Path(folder), debian)
        for suffix, python_bill in bills.items():
            image_bill(out / f"{name}-image{suffix}.cdx.json", python_bill, packages)
    _step("chart and krew manifest" if url else "chart")
    write_chart(_ROOT / "deploy/helm/podium", out)
    if url:
        (out / "podium.krew.yaml").write_text(krew_manifest(archives, url))
    return packages


def _pin(lock: Path, extra: str = "") -> None:
    """Write the packages that podium runs with, or with an extra: those of the lock without what only its build needs.

    All versions of Python share the modules of the single file, so a package has one version: the oldest Python's.
    """
    oldest = lock.with_suffix(".oldest")
    options = ("--extra", extra) if extra else ()
    _resolve(Path(f"requirements/{extra or 'runtime'}.lock"), oldest, *options)
    _resolve(oldest, lock, "--universal", "--generate-hashes", *options)


def _resolve(constraints: Path, lock: Path, *more: str) -> None:
    resolve = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-header", "--python-version", PYTHONS[0]]
    resolve += ["pyproject.toml", "--constraints", str(constraints), "--output-file", str(lock), *more]
    if subprocess.run(resolve, cwd=_ROOT, check=False).returncode:
        sys.exit("the locked packages could not be resolved")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _step(subject: str) -> None:
    click.echo(f"== {subject}")


if __name__ == "__main__":
    main()
