"""Where the control plane's binaries are looked for before anything is built.

In order: `KUBEBUILDER_ASSETS`, `PATH`, the cache. A binary of another minor release is passed over by name.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.control_plane import catalogue
from tests.control_plane.catalogue import Tool


@dataclass(frozen=True, slots=True)
class Location:
    """Where one binary was found. `origin` is `KUBEBUILDER_ASSETS`, `PATH`, `cache` or `built`."""

    path: Path
    origin: str


@dataclass(frozen=True, slots=True)
class Binaries:
    """A usable binary for every tool of the control plane."""

    by_name: Mapping[str, Location]

    def __getitem__(self, name: str) -> Path:
        return self.by_name[name].path


@dataclass(frozen=True, slots=True)
class FullEvaluation:
    """What a look round found, and one sentence for each binary that was passed over."""

    locations: Mapping[str, Location]
    passed_over: tuple[str, ...]


def cache_root(environ: Mapping[str, str] = os.environ) -> Path:
    """The directory that holds every cached build, one directory per cache key."""
    base = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or Path.home()) / ".cache"
    return Path(base) / "podium" / "control-plane"


def evaluate_all(environ: Mapping[str, str] = os.environ) -> FullEvaluation:
    """Looks for each binary in turn; runs candidates outside the cache to ask for their version."""
    locations: dict[str, Location] = {}
    passed_over: list[str] = []
    for tool in catalogue.TOOLS:
        for candidate in _candidates(tool, environ):
            complaint = _complaint(tool, candidate)
            if complaint is None:
                locations[tool.name] = candidate
                break
            passed_over.append(complaint)
    return FullEvaluation(locations, tuple(passed_over))


def _candidates(tool: Tool, environ: Mapping[str, str]) -> list[Location]:
    candidates = []
    if assets := environ.get("KUBEBUILDER_ASSETS"):
        candidates.append(Location(Path(assets) / tool.name, "KUBEBUILDER_ASSETS"))
    if on_path := shutil.which(tool.name, path=environ.get("PATH", "")):
        candidates.append(Location(Path(on_path), "PATH"))
    candidates.append(Location(cache_root(environ) / catalogue.cache_key() / tool.name, "cache"))
    return [candidate for candidate in candidates if candidate.path.is_file()]


def _complaint(tool: Tool, candidate: Location) -> str | None:
    # The cache's key already says which version it holds; asking again would cost 0.1 s per start.
    if candidate.origin == "cache":
        return None
    version = catalogue.reported_version(tool, candidate.path)
    if catalogue.is_acceptable(tool, version):
        return None
    version_needed = ".".join(str(number) for number in catalogue.release(catalogue.required_version(tool))[:2])
    says = f"is version {version}" if version else "does not tell its version"
    return f"passed over {candidate.path}: it {says}, {version_needed} is needed"
