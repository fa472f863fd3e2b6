"""`python -m tests.foreign_image`: start the images for another kind of machine, by Debian's QEMU, as root.

Each image has to start as its user on a root that cannot be written, become ready and bind a pod. QEMU is fetched from
the sources that apt has here, into a folder of its own.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import anyio
import click

import podium
from release.__main__ import IMAGE_EXTRAS
from release.debian import fetch, members
from tests.integration.release.image import assert_schedules, images

_ROOT: Final = Path(__file__).parents[2]
_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_EMULATORS: Final = {"amd64": "qemu-x86_64-static", "arm64": "qemu-aarch64-static"}


@click.command(help=__doc__)
@click.argument("archive", type=click.Path(path_type=Path, exists=True, dir_okay=False), required=False)
def main(archive: Path | None) -> None:
    if os.getuid() != 0:
        raise click.ClickException("only root can make a root that cannot be written")
    own_machine = _MACHINES[platform.machine()]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # The image's user looks into it.
        folder.chmod(0o755)
        if archive is None:
            archive = _build([machine for machine in _EMULATORS if machine != own_machine], folder / "dist")
        emulators = _emulators(own_machine, folder / "qemu")
        for tag in (podium.__version__, *(f"{podium.__version__}-{extra}" for extra in IMAGE_EXTRAS)):
            for image in images(archive, folder / tag, tag):
                if image.machine == own_machine:
                    continue
                mount = folder / f"shared-{tag}-{image.machine}"
                mount.mkdir()
                emulator = mount / _EMULATORS[image.machine]
                emulator.write_bytes(emulators[emulator.name])
                emulator.chmod(0o755)
                anyio.run(assert_schedules, image, mount, str(emulator))
                click.echo(f"{tag} for {image.machine}: started as user 65532 on a read-only root, and bound a pod")


def _build(machines: list[str], out: Path) -> Path:
    targets = [argument for machine in machines for argument in ("--target", f"linux-{machine}")]
    subprocess.run([sys.executable, "-m", "release", *targets, "--out", out], cwd=_ROOT, check=True)
    return out / f"podium-{podium.__version__}-image.oci.tar"


def _emulators(machine: str, folder: Path) -> dict[str, bytes]:
    """Return QEMU's programs for each kind of machine, by name; they run on this one.

    Raises:
        SystemExit: apt is not there, or has no such package.
    """
    (package,) = fetch(("qemu-user-static",), machine, folder)
    paths = {f"usr/bin/{name}" for name in _EMULATORS.values()}
    return {
        Path(member.name).name: member.content for member in members(package) if member.name in paths and member.content
    }


if __name__ == "__main__":
    main()
