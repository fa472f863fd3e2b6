"""A container image as a runtime would have it: unpacked, and run by its own configuration."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

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

    def script(self, folder: Path) -> str:
        """A shell script that runs its arguments in the image on a read-only root, and shows it one folder."""
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
            f'{run} /opt/podium/bin/python "$@"',
        )
        return f"exec unshare --mount sh -ec {shlex.quote(' && '.join(steps))} sh"


def images(archive: Path, folder: Path) -> list[Image]:
    """Unpack the images of a layout."""
    with tarfile.open(archive) as layout:

        def blob(descriptor: Json) -> bytes:
            file = layout.extractfile(f"blobs/{descriptor['digest'].replace(':', '/')}")
            assert file is not None
            content = file.read()
            assert len(content) == descriptor["size"]
            return content

        entry = layout.extractfile("index.json")
        assert entry is not None
        (tagged,) = json.loads(entry.read())["manifests"]
        unpacked = []
        for descriptor in json.loads(blob(tagged))["manifests"]:
            manifest, machine = json.loads(blob(descriptor)), descriptor["platform"]["architecture"]
            for layer in manifest["layers"]:
                with tarfile.open(fileobj=io.BytesIO(blob(layer))) as members:
                    members.extractall(folder / machine, filter="tar")
            unpacked.append(Image(folder / machine, machine, json.loads(blob(manifest["config"]))["config"]))
    return unpacked
