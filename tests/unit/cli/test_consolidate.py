import json
from functools import partial

import pytest

from tests.unit.cli.commands import run, written
from tests.unit.provisioner.clusters import node, pod

_run = partial(run, "consolidate")
_KEEP = {"karpenter.sh/do-not-disrupt": "true"}
_OWNED = {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1"}]}


def _cluster(path, *objects):
    for each in objects:
        if each["kind"] == "Node":
            each["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    return written(path, *({"apiVersion": "v1", **each} for each in objects))


@pytest.fixture
def half_empty(tmp_path):
    """Of four nodes one is empty, one holds what has room on another, and one has a pod that must not be disturbed."""
    kept = pod("kept", node="d", cpu="3500m", metadata={**_OWNED, "annotations": _KEEP})
    pods = [pod(name, node=name, cpu="1500m", metadata=_OWNED) for name in ("b", "c")]
    return _cluster(tmp_path / "cluster.yaml", *(node(name, zone="zone-1") for name in "abcd"), *pods, kept)


def _json(*arguments):
    result = _run(*arguments, "-o", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_the_commands_come_in_their_order_with_what_they_save(half_empty):
    plan = _json("-f", half_empty, "--adopt-nodes")
    first, second = plan["commands"]
    assert (first["reason"], first["nodes"], first["new_nodes"]) == ("Empty", ["a"], [])
    assert (second["reason"], second["nodes"], list(second["moves"])) == ("Underutilized", ["b"], ["default/b"])
    assert plan["hourly_savings"] == pytest.approx(first["hourly_savings"] + second["hourly_savings"])
    assert plan["blockers"]["d"] == ['Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=default/kept)']
    shown = " ".join(_run("-f", half_empty, "--adopt-nodes").stdout.split())
    assert "1 a empty nothing 0 " in shown
    assert "2 nodes can go, 0 to buy in their place; saves" in shown


def test_a_node_that_goes_and_one_that_stays_are_explained(half_empty):
    gone = _json("-f", half_empty, "--adopt-nodes", "--why", "b")
    assert gone["outcome"].startswith("goes with command 2, which saves ")
    assert list(gone["moves"]) == ["default/b"]
    stays = _run("-f", half_empty, "--adopt-nodes", "--why", "d").stdout
    assert "do-not-disrupt" in stays
    assert stays.endswith("d stays\n")
    result = _run("-f", half_empty, "--adopt-nodes", "--why", "e")
    assert (result.exit_code, result.stderr) == (1, "Error: e: there is no such node\n")


def test_savings_that_are_too_small_are_left(half_empty):
    assert _json("-f", half_empty, "--adopt-nodes", "--min-savings", "1000")["commands"][1:] == []
    assert _json("-f", half_empty, "--adopt-nodes", "--search", "greedy", "--allow-m-to-n")["hourly_savings"] > 0


def test_the_same_bytes_come_of_objects_in_any_order(tmp_path):
    objects = [*(node(name) for name in "abc"), *(pod(f"p{each}", node=each, metadata=_OWNED) for each in "ab")]
    one = _run("-f", _cluster(tmp_path / "one", *objects), "--adopt-nodes", "-o", "json")
    other = _run("-f", _cluster(tmp_path / "other", *reversed(objects)), "--adopt-nodes", "-o", "json")
    assert one.stdout == other.stdout != ""


def test_without_node_pools_and_adoption_it_says_what_to_do(half_empty):
    result = _run("-f", half_empty)
    assert (result.exit_code, "--adopt-nodes" in result.stderr) == (1, True)
    assert _run("-f", half_empty, "--adopt-nodes", "--node-pools", half_empty).exit_code == 2
    assert _run("-f", half_empty, "--adopt-nodes", "--min-savings", "-1").exit_code == 2


def test_a_cluster_whose_nodes_are_all_needed_says_so(tmp_path):
    path = _cluster(tmp_path / "full", node("a"), pod("big", node="a", cpu="3500m", metadata=_OWNED))
    assert _run("-f", path, "--adopt-nodes").stdout.endswith("No node can go\n")
