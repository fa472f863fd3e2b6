"""Upstream's own end-to-end specs as a program: built from their Go module, and what a run of it reports.

The Go module beside this file names the version. Its main program is ours; the specs are upstream's.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.control_plane.builder import Recipe, build_once
from tests.control_plane.locate import cache_root
from tests.control_plane.progress import Progress

_NAME: Final = "suite"
_MODULE: Final = Path(__file__).parent / "go"
_FLAGS: Final = ("-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags=-s -w")
NEEDS_KUBELET: Final = "[Feature:DynamicResourceAllocation]"
"""How the name of a spec says that it needs a kubelet that prepares devices."""
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Spec:
    """A spec that was selected: its full name, its state in ginkgo's words, and why it has failed or skipped itself."""

    name: str
    state: str
    message: str
    seconds: float

    @property
    def has_passed(self) -> bool:
        return self.state == "passed"


@dataclass(frozen=True, slots=True)
class Results:
    """The specs that a run has selected, and the names of those about the same things that need a real kubelet."""

    specs: tuple[Spec, ...]
    for_kubelets: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        """True if specs ran and all of them passed."""
        return bool(self.specs) and all(spec.has_passed for spec in self.specs)


def recipe() -> Recipe:
    """Return what the program is built from."""
    sources = sorted(_MODULE.glob("suite/*.go"))
    return Recipe.of("upstream-e2e", _MODULE, _FLAGS, {_NAME: "podium.invalid/upstreame2e/suite"}, sources)


def obtain(progress: Progress, environ: Mapping[str, str] = os.environ) -> Path:
    """The path of the program, built when it is not in the cache.

    Raises: BuildError.
    Cost: nothing when it is in the cache; minutes of all cores when it has to be built.
    """
    return build_once(recipe(), cache_root(environ), progress) / _NAME


def results(report: Path) -> Results:
    """Read the JSON report of a run."""
    specs_chosen, for_kubelets = [], []
    for run in json.loads(report.read_text()):
        for spec_report in run["SpecReports"]:
            failure = spec_report.get("Failure", {}).get("Message", "")
            if spec_report["LeafNodeType"] != "It":
                continue
            name = " ".join([*spec_report["ContainerHierarchyTexts"], spec_report["LeafNodeText"]])
            # A spec that the filters leave out is skipped without a word.
            if spec_report["State"] != "skipped" or failure:
                specs_chosen.append(
                    Spec(name, spec_report["State"], _COLOURS.sub("", failure), spec_report["RunTime"] / 1e9)
                )
            elif NEEDS_KUBELET in name:
                for_kubelets.append(name)
    return Results(tuple(sorted(specs_chosen, key=lambda spec: (spec.state, spec.name))), tuple(for_kubelets))
