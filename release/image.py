"""The container images, made of files: Debian's Python and libraries, the locked packages, podium.

No container runtime is needed. A layer for each of the three, so that an upgrade of podium fetches the last one only,
and images with other packages share the first and the last.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import podium
from release.archives import DIRECTORY_MODE, Member, build_time, files_below
from release.debian import DebianPackage, fetch
from release.debian import members as package_members
from release.elf import elf_problems
from release.oci import IMAGE_CONFIG, INDEX, LAYER, ImageLayer, Json, Layout
from release.single_file import Target, unpack_packages

PYTHON: Final = "3.11"
"""The image's Python: the one with which all tests run."""
PACKAGES: Final = (
    *("base-files", "ca-certificates", "media-types", "netbase", "tzdata"),
    *(f"python{PYTHON}-minimal", f"libpython{PYTHON}-minimal", f"libpython{PYTHON}-stdlib"),
    *("libc6", "libcrypt1", "libgcc-s1", "libstdc++6", "libssl3", "zlib1g"),
    *("libbz2-1.0", "libexpat1", "libffi8", "liblzma5", "libuuid1"),
)
_WITHOUT_LIBRARIES: Final = re.compile(r"/lib-dynload/(_crypt_nis|_curses|_curses_panel|_dbm|_sqlite3|nis|readline)\.")
"""Modules of the standard library that podium does not use, and whose libraries are left out."""
_NOT_COMPILED: Final = "/site-packages/kubernetes_asyncio/"
"""Two thousand modules, of which podium imports a few where a kubeconfig names a command for credentials."""
_USER: Final = 65532
_HOME: Final = "opt/podium"
_SITE_PACKAGES: Final = f"{_HOME}/lib/python{PYTHON}/site-packages"
_CERTIFICATES: Final = "etc/ssl/certs/ca-certificates.crt"
_ENTRY: Final = f"#!/{_HOME}/bin/python\nimport sys\n\nfrom podium.cli.main import main\n\nsys.exit(main())\n"
_ENVIRONMENT: Final = (
    f"PATH=/{_HOME}/bin:/usr/bin",
    f"SSL_CERT_FILE=/{_CERTIFICATES}",
    "PYTHONUNBUFFERED=1",
    "PYTHONDONTWRITEBYTECODE=1",
)


def build_images(
    archive: Path, targets: list[Target], locks: Mapping[str, Path], wheel: Path, folder: Path, debian: Path
) -> list[DebianPackage]:
    """Write the layout of the images for these kinds of machines; return the packages of Debian that are in it.

    Args:
        locks: by tag, the packages of an image with versions and hashes.
        wheel: podium's own.
        folder: a scratch folder.
        debian: where Debian's packages are, or are fetched to if they are not.

    Raises:
        SystemExit: Debian's packages cannot be had, this is not the image's Python, or a library is missing.
    """
    if sys.version_info[:2] != tuple(int(number) for number in PYTHON.split(".")):
        sys.exit(f"the image has bytecode for Python {PYTHON}, which has to build it")
    layout, debian_packages = Layout(), list[DebianPackage]()
    manifests: dict[str, list[Json]] = {tag: [] for tag in locks}
    for target in targets:
        scratch = folder / f"image-{target.machine}"
        packages = fetch(PACKAGES, target.machine, debian / target.machine)
        debian_packages += packages
        system, own = _system(packages), _podium(wheel, scratch / "podium")
        # What the images of a machine have in common is compiled and stored once.
        outer = (_layer(system, scratch / "system-bytecode"), _layer(own, scratch / "podium-bytecode"))
        for tag, lock in locks.items():
            unpack_packages(scratch / tag, target, PYTHON, lock)
            locked = files_below(scratch / tag, f"{_SITE_PACKAGES}/")
            if problems := elf_problems([*system, *locked, *own], target.machine):
                sys.exit("\n".join(problems))
            layers = (outer[0], _layer(locked, scratch / f"{tag}-bytecode"), outer[1])
            manifests[tag].append(_add_image(layout, target, layers))
    indexes = {
        tag: layout.add_json({"schemaVersion": 2, "mediaType": INDEX, "manifests": images}, INDEX)
        for tag, images in manifests.items()
    }
    layout.write(archive, indexes, {tag: full_name(tag) for tag in indexes})
    return debian_packages


def full_name(tag: str) -> str:
    """Return the name by which the chart's values and a kubelet call an image: `0.6.0-otel` is that of podium-otel.

    `kind load image-archive` and `ctr images import` keep it, so that no registry is needed.
    """
    version, dash, extra = tag.partition("-")
    return f"docker.io/library/podium{dash}{extra}:{version}"


def _podium(wheel: Path, folder: Path) -> list[Member]:
    """Return podium's files: its wheel unpacked, and the command."""
    zipfile.ZipFile(wheel).extractall(folder)
    return [*files_below(folder, f"{_SITE_PACKAGES}/"), Member(f"{_HOME}/bin/podium", _ENTRY.encode(), 0o755)]


def _layer(content: list[Member], folder: Path) -> ImageLayer:
    """Return the layer of these files and of their bytecode; the folder is a scratch folder."""
    return ImageLayer(_with_directories([*content, *_bytecode(content, folder)]))


def _add_image(layout: Layout, target: Target, layers: tuple[ImageLayer, ...]) -> Json:
    created = datetime.fromtimestamp(build_time(), UTC).isoformat()
    config = {
        "architecture": target.machine,
        "os": target.system,
        "created": created,
        "config": {
            "User": f"{_USER}:{_USER}",
            "ExposedPorts": {"10259/tcp": {}},
            "Env": list(_ENVIRONMENT),
            "Entrypoint": ["podium"],
            "Cmd": ["run"],
            "Labels": {"org.opencontainers.image.version": podium.__version__},
        },
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
        "history": [{"created": created, "created_by": part} for part in ("Debian", "requirements", "podium")],
    }
    manifest = layout.add_manifest(
        layout.add_json(config, IMAGE_CONFIG),
        [layout.add(layer.compressed, LAYER) for layer in layers],
        {"org.opencontainers.image.created": created, "org.opencontainers.image.version": podium.__version__},
    )
    return {**manifest, "platform": {"architecture": target.machine, "os": target.system}}


def _system(packages: list[DebianPackage]) -> list[Member]:
    """Return Debian's files, and what its scripts would have made of them."""
    content = [member for package in packages for member in package_members(package)]
    content = [member for member in content if not _WITHOUT_LIBRARIES.search(member.name)]
    certificates = [member.content for member in content if member.name.endswith(".crt") and member.content]
    names = {member.name.partition("/")[2].partition("/")[0] for member in content if member.name.startswith("usr/")}
    merged = [Member(name, None, 0o777, f"usr/{name}") for name in ("bin", "sbin", "lib", "lib64") if name in names]
    return [
        *content,
        *merged,
        Member(_CERTIFICATES, b"".join(certificates)),
        Member("etc/passwd", f"root:x:0:0::/:/sbin/nologin\npodium:x:{_USER}:{_USER}::/:/sbin/nologin\n".encode()),
        Member("etc/group", f"root:x:0:\npodium:x:{_USER}:\n".encode()),
        Member("etc/nsswitch.conf", b"hosts: files dns\n"),
        Member("tmp", None, 0o1777),
        Member("proc", None, DIRECTORY_MODE),
        Member("sys", None, DIRECTORY_MODE),
        Member("dev", None, DIRECTORY_MODE),
        Member("run", None, DIRECTORY_MODE),
        Member(f"{_HOME}/bin/python", None, 0o777, f"/usr/bin/python{PYTHON}"),
        Member(f"{_HOME}/pyvenv.cfg", b"home = /usr/bin\ninclude-system-site-packages = false\n"),
    ]


def _bytecode(members: list[Member], folder: Path) -> list[Member]:
    """Compile all Python files, so that no start does; return the bytecode.

    A process of its own compiles them in order: bytecode depends on which strings a process has seen.
    """
    folder.mkdir(parents=True)
    for member in members:
        is_module = member.name.endswith(".py") and f"python{PYTHON}/" in member.name
        if is_module and _NOT_COMPILED not in member.name and member.content is not None:
            file = folder / member.name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(member.content)
    # Some packages have templates that are no Python: those are left as they are.
    subprocess.run(
        [
            *(sys.executable, "-I", "-m", "compileall", "-q", "-j", "1"),
            *("--invalidation-mode", "unchecked-hash", "-s", folder, "-p", "/", folder),
        ],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        stdout=subprocess.DEVNULL,
        check=False,
    )
    return [Member(file.relative_to(folder).as_posix(), file.read_bytes()) for file in folder.rglob("*.pyc")]


def _with_directories(members: list[Member]) -> list[Member]:
    """Return the members sorted, each after the directories that lead to it."""
    by_name = {member.name: member for member in members}
    for member in members:
        for parent in Path(member.name).parents:
            if parent != Path():
                by_name.setdefault(parent.as_posix(), Member(parent.as_posix(), None, DIRECTORY_MODE))
    return [by_name[name] for name in sorted(by_name)]
