"""The plugins of examples/: each does what it says, by its own configuration, and keeps the contract."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from podium.framework import Plugin
from podium.objects.core import Pod
from podium.plugins.loading.discovery import load
from podium.testing import Result, check_contract, node, pod, schedule_once

PLUGINS = Path(__file__).parents[3] / "examples/plugins"
CLASSES = {
    "prefer_big_nodes": "PreferBigNodes",
    "keep_gpus_free": "KeepGpusFree",
    "prefer_cheap_nodes": "PreferCheapNodes",
    "gang": "Gang",
    "fewest_pods": "FewestPods",
}
ARGS: dict[str, Any] = {"prefer_cheap_nodes": {"label": "disk"}}


def example(name: str) -> type[Plugin]:
    return load(f"{PLUGINS / name}.py:{CLASSES[name]}")


def schedule(name: str, *args: Any, **fields: Any) -> Result:
    """One cycle with the example's plugin and configuration."""
    return schedule_once(*args, plugins=[example(name)], config=PLUGINS / f"{name}.yaml", **fields)


def test_every_example_is_tested() -> None:
    assert {path.stem for path in PLUGINS.iterdir() if path.suffix in (".py", ".yaml")} == CLASSES.keys()


@pytest.mark.parametrize("name", CLASSES)
def test_an_example_is_short_and_uses_what_is_public(name: str) -> None:
    source = (PLUGINS / f"{name}.py").read_text()
    assert len(source.splitlines()) < 60
    imports = [import_node for import_node in ast.walk(ast.parse(source)) if isinstance(import_node, ast.ImportFrom)]
    assert {str(import_node.module) for import_node in imports} - {"dataclasses"} == {"podium.framework"}


@pytest.mark.parametrize("name", CLASSES)
def test_an_example_keeps_the_contract(name: str) -> None:
    check_contract(example(name), ARGS.get(name))


def test_the_big_node_wins() -> None:
    nodes = [node("small", cpu="4"), node("big", cpu="64"), node("medium", cpu="16")]
    other_pod = pod("other", cpu="32", memory="4Gi", node="big")
    assert schedule_once(pod(cpu="1"), nodes, [other_pod]).node_name != "big"
    result = schedule("prefer_big_nodes", pod(cpu="1"), nodes, [other_pod])
    assert result.scores["PreferBigNodes"] == {"small": 200, "big": 3200, "medium": 800}
    assert result.node_name == "big"


def test_nodes_with_gpus_are_for_pods_that_ask_for_one() -> None:
    nodes = [node("gpu", cpu="64", allocatable={"nvidia.com/gpu": 4}), node("plain")]
    assert schedule_once(pod(), nodes).node_name == "gpu"
    result = schedule("keep_gpus_free", pod(), nodes)
    assert result.node_name == "plain"
    assert result.rejected["gpu"].message == "node(s) are kept for pods with GPUs"
    assert schedule("keep_gpus_free", pod(requests={"nvidia.com/gpu": 1}), nodes).node_name == "gpu"
    assert schedule("keep_gpus_free", pod(), nodes[:1]).message.startswith(
        "0/1 nodes are available: 1 node(s) are kept for pods with GPUs."
    )


def test_the_cheapest_node_that_has_room_wins() -> None:
    prices = {"dear": "90", "cheap": "10", "fair": "30", "unknown": "ask"}
    nodes = [node(name, cpu="4", labels={"example.com/cents-per-hour": price}) for name, price in prices.items()]
    result = schedule("prefer_cheap_nodes", pod(cpu="1"), nodes)
    assert result.scores["PreferCheapNodes"] == {"dear": 5 * 91, "cheap": 5 * 100, "fair": 5 * 97, "unknown": 0}
    assert result.node_name == "cheap"
    full = pod("other", cpu="4", node="cheap")
    assert schedule("prefer_cheap_nodes", pod(cpu="1"), nodes, [full]).node_name == "fair"


def test_the_node_with_the_fewest_pods_for_its_size_wins() -> None:
    nodes = [node("n1", cpu="64", memory="64Gi", pods=10), node("n2", pods=4)]
    pods = [pod(f"other-{index}", cpu="1m", memory="1Mi", node="n1") for index in range(5)]
    assert schedule_once(pod(), nodes, pods).node_name == "n1"
    result = schedule("fewest_pods", pod(), nodes, pods)
    assert result.scores["FewestPods"] == {"n1": 250, "n2": 500}
    assert result.node_name == "n2"


def member(name: str, **fields: Any) -> Pod:
    return pod(name, labels={"example.com/gang": "train", "example.com/gang-size": "3"}, **fields)


def test_a_pod_waits_for_its_gang() -> None:
    assert schedule("gang", member("a"), [node()]).waits == {"Gang": 60.0}
    assert schedule("gang", member("a"), [node()], [member("b", node="n1"), member("c", node="n1")]).waits == {}
    strangers = [member("b", node="n1", namespace="other"), pod("c", node="n1")]
    assert schedule("gang", member("a"), [node()], strangers).waits == {"Gang": 60.0}
    assert schedule("gang", pod(), [node()]).waits == {}
