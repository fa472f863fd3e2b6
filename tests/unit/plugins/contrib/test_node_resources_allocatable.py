"""NodeResourcesAllocatable: small nodes or large ones, by weights."""

from __future__ import annotations

from typing import Any

import pytest

from podium.framework.contract.plugin import Scope
from podium.framework.contract.status import PluginError
from podium.framework.profile.plugin_args import typed_args
from podium.objects.core import Node
from podium.plugins.contrib.node_resources_allocatable import NodeResourcesAllocatable
from podium.testing import check_contract
from tests.builders import node, pod, snapshot_of
from tests.unit.plugins.clusters import RecordingHandle, normalized, scored, scored_one_by_one

GPU = "example.com/gpu"


def made(args: Any = None) -> NodeResourcesAllocatable:
    handle: Any = RecordingHandle()
    return NodeResourcesAllocatable(typed_args(NodeResourcesAllocatable, args), handle)


def raw(args: Any, *nodes: Node) -> dict[str, int]:
    snapshot, plugin = snapshot_of(*nodes), made(args)
    table = scored(plugin, pod(), snapshot)
    assert scored_one_by_one(plugin, pod(), snapshot) == table
    return table


def weights(*pairs: tuple[str, int], mode: str = "Most") -> Any:
    return {"mode": mode, "resources": [{"name": name, "weight": weight} for name, weight in pairs]}


@pytest.mark.parametrize("args", [None, {"mode": "Most"}, weights((GPU, 3), ("cpu", 1))])
def test_it_keeps_the_contract(args: Any) -> None:
    check_contract(NodeResourcesAllocatable, args)


def test_by_default_a_millicore_counts_as_much_as_a_mebibyte_and_small_nodes_win() -> None:
    snapshot = snapshot_of(node("small", cpu="1", memory="1Gi"), node("large", cpu="3", memory="3Gi"))
    assert scored(made(), pod(), snapshot)["small"] == -((1000 << 20) + (1 << 30)) // ((1 << 20) + 1) + 1
    assert normalized(made(), pod(), snapshot) == {"small": 100, "large": 0}
    assert normalized(made({"mode": "Most"}), pod(), snapshot) == {"small": 0, "large": 100}


def test_equal_nodes_get_nothing() -> None:
    snapshot = snapshot_of(node("a"), node("b"))
    assert normalized(made(), pod(), snapshot) == {"a": 0, "b": 0}


def test_the_quotient_is_rounded_towards_zero() -> None:
    assert raw(weights(("cpu", 1), (GPU, 1), mode="Least"), node(cpu="1m", allocatable={GPU: 2})) == {"n1": -1}


def test_pods_and_unknown_names_count_0_and_dilute_the_mean() -> None:
    assert raw(weights(("cpu", 1), ("pods", 1), ("odd", 2)), node(cpu="4", pods=110)) == {"n1": 1000}


def test_the_last_weight_of_a_name_counts() -> None:
    assert raw(weights(("cpu", 1), (GPU, 1), ("cpu", 3)), node(cpu="4m", allocatable={GPU: 8})) == {"n1": 5}


def test_sums_beyond_int64_are_exact() -> None:
    heavy = weights(("memory", 2**40), ("cpu", 2**40))
    assert raw(heavy, node(cpu="2m", memory="4Ei")) == {"n1": (2**62 + 2) // 2}


def test_what_runs_on_a_node_does_not_matter() -> None:
    snapshot = snapshot_of(node("a"), node("b"), pod("x", cpu="3", node="a"))
    scores = scored(made(), pod(), snapshot)
    assert scores["a"] == scores["b"]
    assert made().score_scope(pod().spec) is Scope.NODE
    assert made().events_to_register() == ()


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (
            weights(("cpu", 1), ("memory", 0)),
            "resources[1].weight: Invalid value: 0: resource weight of memory should be a positive value, got :0",
        ),
        ({"mode": "Middle"}, 'mode: Invalid value: "Middle": invalid support ModeType'),
        ({"mode": "x", "resources": [{"name": "cpu"}]}, "args: [resources[0].weight: Invalid value: 0: "),
        ({"resources": [{"name": "cpu", "wait": 1}]}, "args.resources[0].wait: unknown field"),
    ],
)
def test_args_that_upstream_refuses_are_refused_in_its_words(args: Any, error: str) -> None:
    with pytest.raises(PluginError) as raised:
        typed_args(NodeResourcesAllocatable, args)
    assert error in str(raised.value)
