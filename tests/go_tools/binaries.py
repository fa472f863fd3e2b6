"""Tools of others that are written in Go and that tests run: each built from its Go module, which names the version."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.control_plane.builder import BuildError, Recipe, build_once
from tests.control_plane.locate import cache_root
from tests.control_plane.progress import Progress
from tests.control_plane.toolchain import ToolchainError

HELM: Final = "helm"
PACKAGES: Final = {HELM: "helm.sh/helm/v3/cmd/helm"}

_MODULES: Final = Path(__file__).parent
_FLAGS: Final = ("-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags=-s -w")


def recipe(name: str) -> Recipe:
    """What that one of `PACKAGES` is built from."""
    return Recipe.of(name, _MODULES / name, _FLAGS, {name: PACKAGES[name]})


def obtain(name: str, progress: Progress, environ: Mapping[str, str] = os.environ) -> Path:
    """The path of that binary, built when it is not in the cache.

    Raises: BuildError.
    Cost: nothing when it is in the cache; minutes of all cores when it has to be built.
    """
    try:
        return build_once(recipe(name), cache_root(environ), progress) / name
    except ToolchainError as problem:
        raise BuildError(str(problem)) from problem
