"""The recipes in CONTRIBUTING.md for a watched resource and for a gated plugin are complete and short."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml

from podium.objects import resource_types
from podium.objects.resource_types import ResourceType
from podium.sandbox.resources import BY_KIND

ROOT = Path(__file__).parents[2]
TEMPLATES = "deploy/helm/podium/templates"
BLOCK = re.compile(r"^```\w+\n# (\S+?)(?:, above: ([^\n]+))?\n(.*?)^```$", re.M | re.S)
"""What a recipe adds: to which file, above which line, and the text."""

RULE = re.compile(r"^ *- apiGroups: .*\n +resources: .*\n +verbs: .*", re.M)

CHECKS = {
    "A watched resource": """
from podium.daemon.handlers import RESOURCE_EVENTS
from podium.objects.resource_types import ALL, RESERVATIONS, WITHOUT_GATES
from podium.sandbox.resources import BY_KIND

assert RESERVATIONS in ALL and RESERVATIONS not in WITHOUT_GATES
assert RESOURCE_EVENTS[RESERVATIONS].value == "example.com/Reservation"
assert BY_KIND[RESERVATIONS.api_version, RESERVATIONS.kind].plural == RESERVATIONS.plural
""",
    "A gated plugin": """
from podium.config import default_configuration, parse_feature_gates
from podium.engine import Cluster
from podium.engine.store import ObjectStore

def placed(*gates):
    cluster = Cluster(default_configuration(parse_feature_gates(gates)), ObjectStore(()))
    metadata = {"name": "n1", "labels": {"example.com/reserved-for": "others"}}
    allocatable = {"cpu": "1", "memory": "1Gi", "pods": "10"}
    cluster.add({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": allocatable}})
    spec = {"containers": [{"name": "c", "image": "i"}]}
    return cluster.place({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec})

assert placed().node == "n1"
assert "1 node(s) were reserved" in placed("ReservedNodes=true").message
""",
}
FILES_MAX = {"A watched resource": 4, "A gated plugin": 3}


def recipe(title: str) -> list[tuple[str, str, str]]:
    """The file, the line above which its part goes ("" for a new file), and the part, of each step."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    section = page.partition(f"\n### {title}\n")[2].partition("\n## ")[0].partition("\n### ")[0]
    return BLOCK.findall(section)


def apply(steps: list[tuple[str, str, str]], tree: Path) -> None:
    for name, anchor, part in steps:
        path = tree / name
        if not anchor:
            assert not path.exists()
            path.write_text(part)
            continue
        lines = path.read_text().splitlines(keepends=True)
        (at,) = [number for number, line in enumerate(lines) if line.lstrip().startswith(anchor)]
        path.write_text("".join([*lines[:at], part, *lines[at:]]))


def watched_by_chart(tree: Path) -> set[tuple[str, str]]:
    """Group and plural of the resources that some role of the chart may list and watch."""
    rights: set[tuple[str, str]] = set()
    for path in (tree / TEMPLATES).iterdir():
        plain = "\n".join(line for line in path.read_text().splitlines() if "{{" not in line)
        for text in RULE.findall(plain):
            rule: dict[str, Any] = yaml.safe_load(dedent(text))[0]
            if {"list", "watch"} <= set(rule["verbs"]):
                rights |= {(group, plural) for group in rule["apiGroups"] for plural in rule["resources"]}
    return rights


@pytest.mark.parametrize("resource", resource_types.ALL, ids=lambda resource: f"{resource.plural}.{resource.group}")
def test_each_watched_resource_has_its_rights_in_the_chart_and_its_row_in_the_sandbox(
    resource: ResourceType[Any],
) -> None:
    assert (resource.group, resource.plural) in watched_by_chart(ROOT)
    row = BY_KIND[resource.api_version, resource.kind]
    assert (row.plural, row.namespaced) == (resource.plural, resource.is_namespaced)


@pytest.mark.long
@pytest.mark.parametrize("title", CHECKS)
def test_a_recipe_works_as_it_is_written(title: str, tmp_path: Path) -> None:
    steps = recipe(title)
    assert 1 < len({name for name, _, _ in steps}) <= FILES_MAX[title]
    for folder in ("podium", TEMPLATES):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    rights = watched_by_chart(tmp_path)
    apply(steps, tmp_path)
    result = subprocess.run(
        [sys.executable, "-c", CHECKS[title]],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    rights_added = {("example.com", "reservations")} if title == "A watched resource" else set()
    assert watched_by_chart(tmp_path) - rights == rights_added
