"""The recorder: kube-scheduler's own packages in a program that answers questions as `podium evaluate` does.

It is built from the control plane's Go module, with the flags of the control plane's binaries: what those were compiled
from is not compiled again.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.control_plane import catalogue
from tests.control_plane.builder import Recipe, build_once
from tests.control_plane.locate import cache_root
from tests.control_plane.progress import Progress
from tests.parity.cross.drawing import Json
from tests.skew.releases import CURRENT, module_of

NAME: Final = "recorder"
_PACKAGE: Final = f"podium.invalid/controlplane/{NAME}"


def recipe(minor: str = CURRENT) -> Recipe:
    """Return what the recorder is built from. The key changes with everything that could change the binary.

    Sources are shared by all minors; a build tag chooses the few functions whose arguments have changed.
    """
    module = module_of(minor)
    flags = catalogue.build_flags(module)
    content = hashlib.sha256(repr((catalogue.cache_key(), flags)).encode())
    if minor != CURRENT:
        content.update((module / "go.mod").read_bytes() + (module / "go.sum").read_bytes())
        flags = (*flags, f"-modfile={module / 'go.mod'}", f"-tags=minor_{minor.replace('.', '_')}")
    for path in sorted(catalogue.GO_MODULE_DIR.glob(f"{NAME}/*.go")):
        content.update(path.read_bytes())
    key = f"{NAME}-{content.hexdigest()[:12]}"
    return Recipe(key, catalogue.GO_MODULE_DIR, flags, {NAME: _PACKAGE})


def obtain(progress: Progress, environ: Mapping[str, str] = os.environ, *, minor: str = CURRENT) -> Path:
    """The path of the recorder of a minor release, built when it is not in the cache.

    Raises: BuildError.
    Cost: nothing when it is in the cache; seconds where the control plane was built, minutes where it was not.
    """
    return build_once(recipe(minor), cache_root(environ), progress) / NAME


def answers(recorder: Path, questions: Path) -> Iterator[Json]:
    """Its answers to a file with a question a line, in turn.

    Raises: CalledProcessError after the last one, when it has ended badly.
    """
    with questions.open("rb") as lines, subprocess.Popen([recorder], stdin=lines, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, [recorder])
