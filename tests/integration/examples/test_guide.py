"""The guide for authors of plugins: its code runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.config import ExtensionPoint
from podium.framework import Plugin
from podium.framework.profile.runtime import points_of
from podium.testing import check_contract, node, node_metrics, pod, schedule_once

GUIDE = Path(__file__).parents[3] / "docs/plugins.md"
TEXT = GUIDE.read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """Everything that the guide's code defines, read from top to bottom."""
    namespace: dict[str, Any] = {}
    for block in blocks("python"):
        exec(compile(block, str(GUIDE), "exec"), namespace)
    return namespace


def test_the_guides_own_tests_pass(names: dict[str, Any]) -> None:
    tests = [name for name in names if name.startswith("test_")]
    assert len(tests) == 2
    for name in tests:
        names[name]()


@pytest.mark.parametrize(("name", "args"), [("MostFreeMemory", None), ("PreferLabel", {"label": "disk"})])
def test_the_guides_plugins_keep_the_contract(names: dict[str, Any], name: str, args: Any) -> None:
    check_contract(names[name], args)


def test_the_guides_scorer_prefers_free_memory(names: dict[str, Any]) -> None:
    nodes = [node("n1", memory="10Gi"), node("n2", memory="10Gi")]
    pods = [pod("other", memory="6Gi", node="n2")]
    result = schedule_once(pod(), nodes, pods, plugins=[names["MostFreeMemory"]])
    assert result.scores["MostFreeMemory"] == {"n1": 100, "n2": 40}


def test_the_guides_scorer_by_load_prefers_idle_disks(names: dict[str, Any]) -> None:
    nodes = [node(name) for name in ("busy", "idle", "unknown")]
    metrics = node_metrics({"busy": {"disk": 0.9}, "idle": {"disk": 0.2}})
    plugin = names["IdleDisksFirst"]
    assert schedule_once(pod(), nodes, plugins=[plugin], objects=[metrics]).scores[plugin.name] == {
        "busy": 10,
        "idle": 80,
        "unknown": 0,
    }
    check_contract(plugin)


def test_the_guides_configuration_enables_its_plugin(names: dict[str, Any]) -> None:
    (config,) = blocks("yaml")
    assert yaml.safe_load(config)["profiles"][0]["schedulerName"] == "podium"
    pods = [pod("web-0", labels={"app": "web"}, node="n1")]
    incoming = pod("web-1", labels={"app": "web"})
    assert not schedule_once(incoming, [node("n1")], pods, plugins=[names["OnePerApp"]], config=config).node_name


def test_the_guide_names_every_extension_point() -> None:
    import podium.framework

    bases = {getattr(podium.framework, name) for name in re.findall(r"^\| `(\w+Plugin)` \|", TEXT, re.MULTILINE)}
    assert all(issubclass(base, Plugin) for base in bases)
    covered = frozenset().union(*(points_of(base) for base in bases))
    # podium's public contract has no plugins that decide for whole pod groups.
    of_groups = {
        ExtensionPoint.PLACEMENT_GENERATE,
        ExtensionPoint.PLACEMENT_SCORE,
        ExtensionPoint.POD_GROUP_POST_FILTER,
    }
    assert covered == set(ExtensionPoint) - {ExtensionPoint.MULTI_POINT} - of_groups
