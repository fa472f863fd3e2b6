"""The recorder with the plugins of scheduler-plugins, built from a clone: it is no Go module that can be fetched."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.control_plane.builder import Recipe, build_once
from tests.control_plane.catalogue import GO_MODULE_DIR
from tests.control_plane.locate import cache_root
from tests.control_plane.progress import Progress

NAME: Final = "policies"
_OWN: Final = Path(__file__).parent / "go"
_FLAGS: Final = ("-mod=mod", "-buildvcs=false", "-tags=policies,minor_1_35")
_PLUGINS: Final = "sigs.k8s.io/scheduler-plugins"
_PLACEMENT: Final = "github.com/k8stopologyawareschedwg/numaplacement"


def obtain(tree: Path, placement: Path, progress: Progress) -> Path:
    """Return the path of the program, built when it is not in the cache.

    Args:
        tree: a clone of kubernetes-sigs/scheduler-plugins.
        placement: a clone of k8stopologyawareschedwg/numaplacement, which the former needs and no proxy has.
    Raises: BuildError.
    Cost: several minutes of all cores.
    """
    sources = sorted([*GO_MODULE_DIR.glob("recorder/*.go"), *_OWN.glob("*.go")])
    content = hashlib.sha256("".join(_files_of(tree, placement)).encode())
    for path in (tree / "go.mod", *sources):
        content.update(path.read_bytes())
    with tempfile.TemporaryDirectory(prefix="podium-policies-") as directory:
        module = Path(directory)
        for path in sources:
            shutil.copy(path, module)
        _write_module(module, tree, placement)
        recipe = Recipe(f"{NAME}-{content.hexdigest()[:12]}", module, _FLAGS, {NAME: f"podium.invalid/{NAME}"})
        return build_once(recipe, cache_root(os.environ), progress) / NAME


def _files_of(*trees: Path) -> Iterator[str]:
    """Yield which revision each clone is at, and what is changed in it."""
    for tree in trees:
        for command in (("rev-parse", "HEAD"), ("diff", "HEAD")):
            yield subprocess.run(("git", *command), cwd=tree, check=False, capture_output=True, text=True).stdout


def _write_module(module: Path, tree: Path, placement: Path) -> None:
    """Write the files of a module with the requirements and replacements of the plugins' own."""
    text = re.sub(r"^module .*$", f"module podium.invalid/{NAME}", (tree / "go.mod").read_text(), count=1, flags=re.M)
    text = "".join(line for line in text.splitlines(keepends=True) if f"{_PLACEMENT} =>" not in line)
    (module / "go.mod").write_text(
        f"{text}\nrequire {_PLUGINS} v0.0.0\nreplace {_PLUGINS} => {tree.resolve()}\n"
        f"replace {_PLACEMENT} => {placement.resolve()}\n"
    )
    shutil.copy(tree / "go.sum", module)
