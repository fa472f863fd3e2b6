"""Karmada's own estimator client and server, built from its Go module.

The Go module beside this file names the version. Its client is ours, around Karmada's; its server is Karmada's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.control_plane.builder import Recipe, build_once
from tests.control_plane.locate import cache_root
from tests.control_plane.progress import Progress

CLIENT: Final = "client"
SERVER: Final = "scheduler-estimator"
PACKAGES: Final = {
    CLIENT: "podium.invalid/karmada/client",
    SERVER: "github.com/karmada-io/karmada/cmd/scheduler-estimator",
}

_MODULE: Final = Path(__file__).parent / "go"
# Karmada's messages hold Kubernetes' types, which have their protobuf methods in this release with the tag only.
_FLAGS: Final = (
    "-mod=readonly",
    "-buildvcs=false",
    "-trimpath",
    "-tags=kubernetes_protomessage_one_more_release",
    "-ldflags=-s -w",
)


def recipe(name: str) -> Recipe:
    """What that one of `PACKAGES` is built from."""
    sources = sorted(_MODULE.glob("client/*.go")) if name == CLIENT else []
    return Recipe.of(f"karmada-{name}-v{version()}", _MODULE, _FLAGS, {name: PACKAGES[name]}, sources)


def version() -> str:
    """Karmada's version, without the leading v."""
    match = re.search(r"karmada-io/karmada v(\S+)$", (_MODULE / "go.mod").read_text(), re.MULTILINE)
    assert match is not None, "go.mod names no karmada"
    return match.group(1)


def obtain(name: str, progress: Progress, environ: Mapping[str, str] = os.environ) -> Path:
    """The path of that binary, built when it is not in the cache.

    Raises: BuildError.
    Cost: nothing when it is in the cache; minutes of all cores when it has to be built.
    """
    return build_once(recipe(name), cache_root(environ), progress) / name
