"""Tools of others that are written in Go and that tests run, built from one Go module, which names their versions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.control_plane.builder import Recipe, build_once
from tests.control_plane.locate import cache_root
from tests.control_plane.progress import Progress

HELM: Final = "helm"
PROMTOOL: Final = "promtool"
PACKAGES: Final = {
    HELM: "helm.sh/helm/v3/cmd/helm",
    PROMTOOL: "github.com/prometheus/prometheus/cmd/promtool",
}

_MODULE: Final = Path(__file__).parent / "go"
_FLAGS: Final = (
    "-mod=readonly",
    "-buildvcs=false",
    "-trimpath",
    # Without the clients of every cloud, in which Prometheus could look for something to scrape.
    "-tags=remove_all_sd",
    "-ldflags=-s -w",
)


def recipe() -> Recipe:
    """Return what the binaries are built from: in one build, since they share most of what they import."""
    return Recipe.of("tools", _MODULE, _FLAGS, PACKAGES)


def obtain(progress: Progress, environ: Mapping[str, str] = os.environ) -> dict[str, Path]:
    """The paths of the binaries by name, built when they are not in the cache.

    Raises: BuildError.
    Cost: nothing when they are in the cache; minutes of all cores when they have to be built.
    """
    entry = build_once(recipe(), cache_root(environ), progress)
    return {name: entry / name for name in PACKAGES}
