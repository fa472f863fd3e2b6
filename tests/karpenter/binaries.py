"""Karpenter's own simulated scheduling, in programs of ours around it that are built from its Go module.

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
"""Says what a plan costs Karpenter."""
RECORDER: Final = "recorder"
"""Answers questions of `podium plan --cases`."""

_MODULE: Final = Path(__file__).parent / "go"
_FLAGS: Final = ("-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags=-s -w")


def recipe(program: str = PLANNER) -> Recipe:
    """Return what one of the programs is built from."""
    sources = sorted(_MODULE.glob(f"{program}/*.go"))
    packages = {program: f"podium.invalid/karpenter/{program}"}
    return Recipe.of(f"karpenter-{program}-v{version()}", _MODULE, _FLAGS, packages, sources)


def version() -> str:
    """Karpenter's version, without the leading v."""
    match = re.search(r"sigs\.k8s\.io/karpenter v(\S+)$", (_MODULE / "go.mod").read_text(), re.MULTILINE)
    assert match is not None, "go.mod names no karpenter"
    return match.group(1)


def obtain(progress: Progress, program: str = PLANNER, environ: Mapping[str, str] = os.environ) -> Path:
    """The path of one of the programs, built when it is not in the cache.

    Raises: BuildError.
    Cost: nothing when it is in the cache; minutes of all cores when it has to be built.
    """
    return build_once(recipe(program), cache_root(environ), progress) / program
