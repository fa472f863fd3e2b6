"""Habits of the source that no linter holds: sizes, one logger, and words of the field."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "podium"
SOURCES = sorted(PACKAGE.rglob("*.py"))

LINES_MAX = 600
RETIRED = (
    "Doors|Judge|Judged|PodClass|ClassCache|KeptFilters|KeptScores|Promises|Survey|Sees|Newcomer|CarriedTerms|Footprint|"
    "Collaborators|StillCluster|QuietHandle|StillHandle|WhatIf\\w*|Worded|words_of|gone_astray|doors|take_doors|"
    "PreemptionsUnderWay|RoomTaken|as_far_as_readable|WholePod|WholeNode|kept_whole|Gatekeeper|OnceOnly|holds_a_place|"
    "misjudged|unheeded|newcomer|CarriedTerm|is_meant_by|Doubts|Witnesses|StandInRoom|ReducedRoom|ClusterRoom"
)
"""Names that had to be learnt; docs/glossary.md says what they are called now."""
PHRASES = "gone astray|is none of|of ours|tells? of each|told of each"


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_no_file_is_too_long_to_be_read_at_once() -> None:
    assert {str(path.relative_to(ROOT)): count for path in SOURCES if (count := len(lines_of(path))) > LINES_MAX} == {}


def test_every_package_says_what_it_owns() -> None:
    silent = [path.parent.name for path in SOURCES if path.name == "__init__.py" and len(path.read_text()) < 40]
    assert silent == []


def test_there_is_one_way_to_get_a_logger() -> None:
    allowed = {PACKAGE / "lib" / "log.py", *(PACKAGE / "telemetry").glob("*.py")}
    others = [path.name for path in SOURCES if path not in allowed and "structlog.get_logger" in path.read_text()]
    assert others == []


@pytest.mark.parametrize("words", [RETIRED, PHRASES], ids=["names", "phrases"])
def test_retired_words_do_not_come_back(words: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in SOURCES
        for number, line in enumerate(lines_of(path), start=1)
        if re.search(rf"\b(?:{words})\b", line)
    ]
    assert found == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Nor for type checking alone."""
    graph = grimp.build_graph("podium", cache_dir=None)
    # A node's view reads the snapshot that hands it out. The library is looked up when it is first named.
    for importer, imported in (("podium.cluster.node_info", "podium.cluster.snapshot"), ("podium", "podium.engine")):
        graph.remove_import(importer=importer, imported=imported)
    TopologicalSorter({each: graph.find_modules_directly_imported_by(each) for each in graph.modules}).prepare()


ARRAYS = re.compile(r"\b(?:IntArray|BoolArray|Rows|NDArray)\b")
CONTRACT = PACKAGE / "framework" / "contract" / "interface.py"
"""Methods that implement those of a protocol or of the plugin contract need not repeat what the declaration says."""


def functions_with_arrays(path: Path) -> Iterator[tuple[str, str, bool]]:
    """The public functions that return arrays: full name, name, whether their docstring or class says the shape."""

    def visit(body: list[ast.stmt], prefix: str, is_said: bool) -> Iterator[tuple[str, str, bool]]:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.startswith("_"):
                continue
            if isinstance(node, ast.ClassDef):
                yield from visit(node.body, f"{node.name}.", "Shape:" in (ast.get_docstring(node) or ""))
            elif isinstance(node, ast.FunctionDef) and node.returns and ARRAYS.search(ast.unparse(node.returns)):
                yield prefix + node.name, node.name, is_said or "Shape:" in (ast.get_docstring(node) or "")

    return visit(ast.parse(path.read_text()).body, "", False)


def test_functions_that_return_arrays_say_their_shape() -> None:
    contract = {name for _, name, is_said in functions_with_arrays(CONTRACT) if is_said}
    silent = []
    for path in SOURCES:
        if path.relative_to(PACKAGE).parts[0] in ("cluster", "framework", "plugins"):
            functions = list(functions_with_arrays(path))
            declared = contract | {name for _, name, is_said in functions if is_said}
            silent += [f"{path.relative_to(ROOT)}: {whole}" for whole, name, _ in functions if name not in declared]
    assert silent == []
