"""A container image as a runtime would have it: unpacked, and run by its own configuration."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

from podium.sandbox import Sandbox
from release.oci import REFERENCE
from tests.control_plane.client import Client
from tests.e2e.cluster import SandboxCluster
from tests.e2e.daemon import Daemon
from tests.manifests import node, pod

Json = dict[str, Any]


class Image(NamedTuple):
    """An unpacked image.

    Attributes:
        machine: the kind of machine, as Go calls it.
        config: what the image says about how to run it.
    """

    root: Path
    machine: str
    config: Json

    def script(self, folder: Path, emulator: str = "") -> str:
        """A shell script that runs its arguments in the image on a read-only root, and shows it one folder.

        Args:
            emulator: a program in the folder that runs programs of the image's machine, if this one cannot.
        """
        user, _, group = self.config["User"].partition(":")
        environment = " ".join(shlex.quote(variable) for variable in self.config["Env"])
        (self.root / folder.relative_to("/")).mkdir(parents=True, exist_ok=True)
        # The image's PATH does not lead to it.
        chroot = shutil.which("chroot", path=f"{os.environ['PATH']}:/usr/sbin")
        run = f"exec env -i {environment} {chroot} --userspec={user}:{group} --groups= {self.root}"
        steps = (
            f"mount --bind {self.root} {self.root}",
            f"mount --rbind /dev {self.root}/dev",
            f"mount --bind {folder} {self.root}{folder}",
            f"mount -o remount,bind,ro {self.root}",
            f'{run} {emulator} /opt/podium/bin/python "$@"',
        )
        return f"exec unshare --mount sh -ec {shlex.quote(' && '.join(steps))} sh"


def images(archive: Path, folder: Path, tag: str) -> list[Image]:
    """Unpack the images with a tag of a layout, one for each kind of machine."""
    with tarfile.open(archive) as layout:

        def content(name: str) -> bytes:
            file = layout.extractfile(name)
            assert file is not None
            return file.read()

        def blob(descriptor: Json) -> bytes:
            blob_bytes = content(f"blobs/{descriptor['digest'].replace(':', '/')}")
            assert len(blob_bytes) == descriptor["size"]
            return blob_bytes

        entries = {entry["annotations"][REFERENCE]: entry for entry in json.loads(content("index.json"))["manifests"]}
        unpacked = []
        for descriptor in json.loads(blob(entries[tag]))["manifests"]:
            manifest, machine = json.loads(blob(descriptor)), descriptor["platform"]["architecture"]
            for layer in manifest["layers"]:
                with tarfile.open(fileobj=io.BytesIO(blob(layer))) as members:
                    members.extractall(folder / machine, filter="tar")
            unpacked.append(Image(folder / machine, machine, json.loads(blob(manifest["config"]))["config"]))
    return unpacked


async def assert_schedules(image: Image, mount: Path, emulator: str = "") -> None:
    """Run podium in the image as its user on a root that cannot be written, and let it bind a pod.

    Args:
        mount: a folder that is shown to it.
        emulator: a program in the folder that runs programs of the image's machine, if this one cannot.
    """
    assert image.config["User"] == "65532:65532"
    assert (image.config["Entrypoint"], image.config["Cmd"]) == (["podium"], ["run"])
    async with Sandbox() as sandbox, Client(sandbox.url) as admin:
        cluster = SandboxCluster(admin, sandbox.write_kubeconfig(mount / "kubeconfig"), sandbox)
        cluster.kubeconfig.chmod(0o644)
        # The first argument is this environment's Python.
        through = ("sh", "-c", f'shift && {image.script(mount, emulator)} "$@"', "sh")
        daemon = Daemon(mount, cluster.kubeconfig, through=through)
        try:
            await daemon.wait_ready()
            _assert_runs_as_the_images_user(daemon.pid, emulator or "python3.11")
            await cluster.create(node("there"), pod("web"))
            assert await cluster.wait_bound(["web"]) == {"web": "there"}
            assert await daemon.stop() == 0
            assert "Traceback" not in daemon.output()
        finally:
            daemon.kill()


def _assert_runs_as_the_images_user(pid: int, program: str) -> None:
    status = Path(f"/proc/{pid}/status").read_text()
    assert "\nUid:\t65532\t65532\t65532\t65532\nGid:\t65532\t65532\t65532\t65532\n" in status
    assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE)
    assert os.statvfs(f"/proc/{pid}/root/").f_flag & os.ST_RDONLY
    assert Path(f"/proc/{pid}/exe").readlink().name == Path(program).name
