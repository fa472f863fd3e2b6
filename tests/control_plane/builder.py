"""Builds binaries from Go modules, those of the control plane first of all, once per key, however many processes ask.

The build happens in a directory beside the cached ones and is renamed into place, so a cache entry is always whole.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests import lifeline
from tests.control_plane import catalogue
from tests.control_plane.locate import Binaries, Location, cache_root, evaluate_all
from tests.control_plane.progress import Progress
from tests.control_plane.toolchain import ToolchainError, find_go


class BuildError(Exception):
    """Binaries can neither be found nor built; the message is the reason, one line."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """The sources of a cache entry. `packages` are by the names of the binaries, `module` is a directory."""

    key: str
    module: Path
    flags: tuple[str, ...]
    packages: Mapping[str, str]

    @classmethod
    def of(
        cls, name: str, module: Path, flags: tuple[str, ...], packages: Mapping[str, str], sources: Sequence[Path] = ()
    ) -> Self:
        """A recipe whose key changes with everything that could change the binaries.

        Args:
            sources: the module's own files beside go.mod and go.sum.
        """
        content = hashlib.sha256(repr((flags, platform.system(), platform.machine())).encode())
        # A module that needs nothing but Go's own library has no go.sum.
        for path in filter(Path.exists, (module / "go.mod", module / "go.sum", *sources)):
            content.update(path.read_bytes())
        return cls(f"{name}-{content.hexdigest()[:12]}", module, flags, packages)


def obtain(progress: Progress, environ: Mapping[str, str] = os.environ) -> Binaries:
    """Finds every binary, and builds into the cache when one is missing.

    Raises: BuildError.
    Cost: 0.1 s when all are in the cache; several minutes of all cores when they have to be built.
    """
    evaluation = evaluate_all(environ)
    missing = [tool.name for tool in catalogue.TOOLS if tool.name not in evaluation.locations]
    if not missing:
        return Binaries(evaluation.locations)
    for complaint in evaluation.passed_over:
        progress.phase(complaint)
    progress.phase(f"{', '.join(missing)} not found: building Kubernetes {catalogue.cache_key()}")
    build_path = build(cache_root(environ), progress)
    locations = {name: Location(build_path / name, "built") for name in missing}
    return Binaries({**evaluation.locations, **locations})


def build(cache: Path, progress: Progress) -> Path:
    """Builds all binaries of the control plane into the cache entry and returns it."""
    packages = {tool.name: tool.package for tool in catalogue.TOOLS}
    recipe = Recipe(catalogue.cache_key(), catalogue.GO_MODULE_DIR, catalogue.build_flags(), packages)
    return build_once(recipe, cache, progress)


def build_once(recipe: Recipe, cache: Path, progress: Progress) -> Path:
    """Builds into the recipe's cache entry and returns it; returns at once when it is there.

    Raises: BuildError.
    """
    entry = cache / recipe.key
    with lock(cache / f"{entry.name}.lock", progress):
        if not entry.is_dir():
            try:
                go_binary = find_go(cache, progress, catalogue.required_go(recipe.module))
            except ToolchainError as problem:
                raise BuildError(str(problem)) from problem
            unfinished = cache / f"{entry.name}.unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            _compile(recipe, go_binary, unfinished, progress)
            unfinished.rename(entry)
            progress.phase(f"built: {entry}")
    return entry


@contextmanager
def lock(path: Path, progress: Progress) -> Iterator[None]:
    """One process at a time; the others say that they wait."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                progress.tick("another process is building: waiting for it")
                time.sleep(0.2)
        # Closing the file releases the lock, also when the process is killed.
        yield


def _compile(recipe: Recipe, go_binary: Path, output: Path, progress: Progress) -> None:
    packages = list(recipe.packages.values())
    progress.phase(f"using {go_binary}: downloading modules")
    outdated = _run_go(
        [go_binary, "list", *recipe.flags, "-deps", "-f={{if .Stale}}{{.ImportPath}}{{end}}", *packages],
        recipe.module,
        progress,
        lambda count, line: f"{count} modules, now {line.removeprefix('go: downloading ')}",
    )
    total = sum(1 for line in outdated.splitlines() if line.strip())
    progress.phase(f"compiling {total} packages")
    _run_go(
        [go_binary, "build", *recipe.flags, "-v", f"-o={output}{os.sep}", *packages],
        recipe.module,
        progress,
        lambda count, line: f"{count} of {total} packages, now {line}" if count < total else "linking",
    )
    # `go build` names a binary after the last element of its package path.
    for name, package in recipe.packages.items():
        (output / _binary_name(package)).rename(output / name)


def _run_go(
    command: Sequence[str | Path], module: Path, progress: Progress, describe: Callable[[int, str], str]
) -> str:
    """Runs `go`, describing now and then how many lines it has written to stderr and the last one.

    Returns what it wrote to stdout. Raises: BuildError with the last line when it fails.
    """
    with (
        tempfile.TemporaryFile("w+") as answer,
        lifeline.start(
            command, cwd=module, env=_environ(), stdout=answer, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        assert process.stderr is not None
        lines: list[str] = []
        reader = threading.Thread(target=lines.extend, args=(process.stderr,), daemon=True)
        reader.start()
        while reader.is_alive():
            reader.join(timeout=0.5)
            if lines:
                progress.tick(describe(len(lines), lines[-1].strip()))
        if process.wait() != 0:
            reason = lines[-1].strip() if lines else "no output"
            raise BuildError(f"go {command[1]} failed: {reason}")
        answer.seek(0)
        return answer.read()


def _environ() -> dict[str, str]:
    # The caller's flags and workspace must not leak into a build whose result is cached by content.
    return {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}


def _binary_name(package: str) -> str:
    elements = package.split("/")
    is_major_version = elements[-1].startswith("v") and elements[-1][1:].isdigit()
    return elements[-2] if is_major_version else elements[-1]
