"""Karpenter's own simulated scheduling, in a program of ours around it that is built from its Go module.

The Go module beside this file names the version.
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

PLANNER: Final = "planner"

_MODULE: Final = Path(__file__).parent / "go"
_FLAGS: Final = ("-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags=-s -w")


def recipe() -> Recipe:
    """What it is built from."""
    sources = sorted(_MODULE.glob(f"{PLANNER}/*.go"))
    packages = {PLANNER: f"podium.invalid/karpenter/{PLANNER}"}
    return Recipe.of(f"karpenter-{PLANNER}-v{version()}", _MODULE, _FLAGS, packages, sources)


def version() -> str:
    """Karpenter's version, without the leading v."""
    match = re.search(r"sigs\.k8s\.io/karpenter v(\S+)$", (_MODULE / "go.mod").read_text(), re.MULTILINE)
    assert match is not None, "go.mod names no karpenter"
    return match.group(1)


def obtain(progress: Progress, environ: Mapping[str, str] = os.environ) -> Path:
    """The path of the program, built when it is not in the cache.

    Raises: BuildError.
    Cost: nothing when it is in the cache; minutes of all cores when it has to be built.
    """
    return build_once(recipe(), cache_root(environ), progress) / PLANNER
