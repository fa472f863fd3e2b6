"""Which releases of Kubernetes podium is run against, and the binaries of each.

The Go modules beside this file name the versions of the older ones. Only what a release serves and controls is built
from them; etcd, kubectl and kube-scheduler are those of `tests/control_plane`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.control_plane import builder, catalogue
from tests.control_plane.builder import BuildError, Recipe, build_once
from tests.control_plane.locate import Binaries, Location, cache_root
from tests.control_plane.progress import Progress

VARIABLE: Final = "PODIUM_KUBERNETES"
"""The environment variable that names the minor release which tests run against."""

OF_A_RELEASE: Final = ("kube-apiserver", "kube-controller-manager")

_MODULES: Final = Path(__file__).parent / "go"


def minor_of(version: str) -> str:
    """`1.36.2` is of the minor release `1.36`."""
    return ".".join(version.split(".")[:2])


CURRENT: Final = minor_of(catalogue.kubernetes_version())
MINORS: Final = (*sorted((module_path.name for module_path in _MODULES.iterdir()), key=catalogue.release), CURRENT)


def module_of(minor: str) -> Path:
    """The folder of the Go module that a minor release is built from."""
    return catalogue.GO_MODULE_DIR if minor == CURRENT else _MODULES / minor


def recipe(minor: str) -> Recipe:
    """Return what an older minor release is built from."""
    module = module_of(minor)
    packages = {tool.name: tool.package for tool in catalogue.TOOLS if tool.name in OF_A_RELEASE}
    return Recipe.of(f"v{catalogue.kubernetes_version(module)}", module, catalogue.build_flags(module), packages)


def kube_scheduler(progress: Progress, minor: str, environ: Mapping[str, str] = os.environ) -> Path:
    """The path of a minor release's kube-scheduler, built when it is in no cache. Raises: BuildError."""
    if minor == CURRENT:
        return builder.obtain(progress, environ)["kube-scheduler"]
    module = module_of(minor)
    packages = {tool.name: tool.package for tool in catalogue.TOOLS if tool.name == "kube-scheduler"}
    version = catalogue.kubernetes_version(module)
    scheduler = Recipe.of(f"kube-scheduler-v{version}", module, catalogue.build_flags(module), packages)
    return build_once(scheduler, cache_root(environ), progress) / "kube-scheduler"


def obtain(progress: Progress, environ: Mapping[str, str] = os.environ) -> Binaries:
    """The binaries of the minor release that the environment names; without a name, those of `tests/control_plane`.

    Raises: BuildError.
    Cost: 0.1 s when all are in the cache; several minutes of all cores when a release has to be built.
    """
    minor = environ.get(VARIABLE) or CURRENT
    if minor not in MINORS:
        raise BuildError(f"{VARIABLE}={minor}: only {', '.join(MINORS)} can be built")
    binaries = builder.obtain(progress, environ)
    if minor == CURRENT:
        return binaries
    entry = build_once(recipe(minor), cache_root(environ), progress)
    return Binaries({**binaries.by_name, **{name: Location(entry / name, "cache") for name in OF_A_RELEASE}})
