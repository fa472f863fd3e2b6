"""`--rules podium` answers in podium's words, and Karpenter's rules in Karpenter's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.commands import run, write_objects
from tests.unit.provisioner.clusters import (
    CAPACITY_TYPE,
    TYPES,
    ZONE,
    managed_node,
    node,
    node_affinity,
    node_claim,
    node_pool,
    pod,
    requirement,
)

KARPENTERS = (
    "did not tolerate taint",
    "incompatible requirements",
    "does not have known values",
    "filtered out all",
    "not in zone",
    "nodeclaim/",
    "uninitialized",
    "managed by karpenter",
    "Nodeclaim",
    "marked for deletion",
    "Disruption is blocked",
    "Pod has ",
    "Pdb prevents",
    "multiple PDBs",
    "Not all pods would schedule",
    "Can't re",
    "SpotToSpotConsolidation requires",
    "Filtering by price",
    "consolidation disabled",
    "has consolidation policy",
    "Instance Type",
    "Node does not have label",
    "dynamic nodepools",
    "Dynamic Resource Allocation requirements",
    "no instance type has enough resources",
    "not found (NodePool",
    "room for {",
    "nderutilized",
    "karpenter.kwok.sh",
)
"""Parts of Karpenter's sentences."""

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
OWNED = {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1"}]}
VERSIONS = {"NodePool": "karpenter.sh/v1", "NodeClaim": "karpenter.sh/v1", "PodDisruptionBudget": "policy/v1"}


def _cluster(path: Path, *objects: dict[str, Any]) -> Path:
    return write_objects(path, *({"apiVersion": VERSIONS.get(item["kind"], "v1"), **item} for item in objects))


def _answers(*arguments: object) -> Iterator[str]:
    """What each form of the answer says."""
    for output in ("json", "yaml", "text"):
        result = run(*arguments, "-o", output)
        assert result.exit_code == 0, result.stderr
        yield " ".join(result.stdout.split())


@pytest.fixture
def types(tmp_path: Path) -> Path:
    path = tmp_path / "types.json"
    path.write_text(json.dumps(list(TYPES)))
    return path


STAYING = {
    "a taint": (node_pool(taints=[{"key": "gpu", "effect": "NoSchedule"}]), pod("web", cpu="3")),
    "a size": (node_pool(), pod("web", cpu="99")),
    "a label that nodes have otherwise": (node_pool(), pod("web", nodeSelector={ZONE: "zone-9"})),
    "a label of the pool": (node_pool(labels={"team": "a"}), pod("web", nodeSelector={"team": "b"})),
    "an unknown label": (node_pool(), pod("web", nodeSelector={"zone": "zone-1"})),
    "an affinity": (node_pool(), pod("web", affinity=node_affinity(requirement("disk", "Exists")))),
    "limits": (node_pool(limits={"cpu": "1"}), pod("web")),
    "a pool without types": (node_pool(requirements=[requirement(ZONE, "In", "nowhere")]), pod("web")),
    "a pool of too few": (node_pool(requirements=[requirement(CAPACITY_TYPE, "Exists", minValues=9)]), pod("web")),
    "a pool that is not ready": (node_pool(ready=False), pod("web")),
    "a claim": (node_pool(), pod("web", resourceClaims=[{"name": "c", "resourceClaimName": "c"}])),
}


@pytest.mark.parametrize("objects", STAYING.values(), ids=STAYING.keys())
def test_why_a_pod_stays_is_said_in_podiums_words(tmp_path: Path, types: Path, objects: tuple[Any, ...]) -> None:
    arguments = ("plan", "-f", _cluster(tmp_path / "c", *objects), "--catalogue", types, "--rules", "podium")
    for options in ((), ("--why", "web")):
        for text in _answers(*arguments, *options):
            assert "default/web" in text
            assert [karpenter for karpenter in KARPENTERS if karpenter in text] == []


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("a size", "no instance type that can be launched has room for 99 cpu, 100Mi memory, 1 pods"),
        ("a label that nodes have otherwise", f"no instance type that can be launched has {ZONE} in (zone-9)"),
        ("a label of the pool", "the pod demands team in (b), and its nodes have team in (a)"),
        ("limits", "its limits leave no room for another node"),
    ],
)
def test_what_is_missing_is_what_is_named(tmp_path: Path, types: Path, name: str, own: str) -> None:
    arguments = ("plan", "-f", _cluster(tmp_path / "c", *STAYING[name]), "--catalogue", types, "--rules", "podium")
    (stays,) = json.loads(next(_answers(*arguments)))["unschedulable"]
    assert stays["pools"] == {"pool": own}


def test_karpenters_rules_keep_karpenters_words(tmp_path: Path, types: Path) -> None:
    for name, words in (
        ("a taint", "did not tolerate taint"),
        ("a size", "no instance type has enough resources"),
        ("a pool without types", "NodePool requirements filtered out all compatible"),
        ("a pool of too few", "due to minValues incompatibility"),
    ):
        arguments = ("plan", "-f", _cluster(tmp_path / "c", *STAYING[name]), "--catalogue", types)
        assert all(words in text for text in _answers(*arguments))


def budget(name: str) -> dict[str, Any]:
    """A PodDisruptionBudget of all pods, which allows nothing."""
    metadata = {"name": name, "namespace": "default"}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 9}
    return {"kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec, "status": {"disruptionsAllowed": 0}}


def node_and_claim(name: str, **fields: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A node of the pool, and its NodeClaim."""
    node = managed_node(name, machine=f"machine-{name}", **{"zone": "zone-1", CAPACITY_TYPE: "on-demand"}, **fields)
    node["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    claim = node_claim(f"claim-{name}", machine=f"machine-{name}")
    claim["metadata"]["labels"] = {**node["metadata"]["labels"]}
    states = ("Launched", "Registered", "Initialized", "Consolidatable")
    claim["status"]["conditions"] = [{"type": state, "status": "True"} for state in states]
    return node, claim


def running(name: str, on: str, **fields: Any) -> dict[str, Any]:
    metadata = {**OWNED, **fields.pop("metadata", {})}
    return pod(name, node=on, metadata=metadata, **fields)


def fleet() -> list[dict[str, Any]]:
    """Nodes that stay, each for another reason."""
    protected, unmanaged = node_and_claim("kept"), node("unmanaged")
    protected[0]["metadata"]["annotations"] = {DO_NOT_DISRUPT: "true"}
    unready = node_and_claim("unready", initialized=False)
    unready[1]["status"]["conditions"] = [{"type": "Launched", "status": "True"}]
    unknown = node_and_claim("unknown")
    unlabelled = node_and_claim("unlabelled")
    for documents, key, value in (
        (unknown, "node.kubernetes.io/instance-type", "odd"),
        (unlabelled, CAPACITY_TYPE, None),
    ):
        for item in documents:
            item["metadata"]["labels"].pop(key, None)
            if value is not None:
                item["metadata"]["labels"][key] = value
    pods = [
        running("guarded", "busy", cpu="3500m", metadata={"annotations": {DO_NOT_DISRUPT: "true"}}),
        running("one", "budgeted", cpu="3500m", labels={"app": "web"}),
        running("two", "dear", cpu="3500m"),
        running("three", "unknown", cpu="3500m"),
        running("four", "unlabelled", cpu="3500m"),
    ]
    claims = [part for name in ("busy", "budgeted", "dear") for part in node_and_claim(name)]
    pool = node_pool(disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"})
    return [pool, *protected, unmanaged, *unready, *unknown, *unlabelled, *claims, *pods, budget("calm")]


def test_why_nodes_stay_is_said_in_podiums_words(tmp_path: Path, types: Path) -> None:
    cluster = _cluster(tmp_path / "c", *fleet())
    arguments = ("consolidate", "-f", cluster, "--catalogue", types, "--rules", "podium")
    for text in _answers(*arguments):
        for part in (
            "It belongs to no NodeClaim",
            f"Its annotation {DO_NOT_DISRUPT} keeps it",
            f"The annotation {DO_NOT_DISRUPT} of pod default/guarded keeps it",
            "PodDisruptionBudget default/calm lets none of its pods be evicted now",
            "The catalogue does not have its instance type odd",
            f"It lacks the label {CAPACITY_TYPE}",
        ):
            assert part in text
        assert [karpenter for karpenter in KARPENTERS if karpenter in text] == []
    karpenters_text = " ".join(_answers(*arguments[:-1], "karpenter"))
    for part in ("Node isn't managed by karpenter", "Pdb prevents pod evictions", 'Instance Type \\"odd\\" not found'):
        assert part in karpenters_text


@pytest.mark.parametrize(
    ("disruption", "own"),
    [
        ({"consolidateAfter": "Never"}, "NodePool pool never lets nodes go"),
        ({"consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s"}, "NodePool pool lets only empty nodes go"),
    ],
)
def test_what_its_pool_forbids_is_said_in_podiums_words(
    tmp_path: Path, types: Path, disruption: dict[str, str], own: str
) -> None:
    objects = [node_pool(disruption=disruption), *node_and_claim("n1"), running("one", "n1")]
    arguments = ("consolidate", "-f", _cluster(tmp_path / "c", *objects), "--catalogue", types, "--rules", "podium")
    for text in _answers(*arguments):
        assert own in text
        assert [karpenter for karpenter in KARPENTERS if karpenter in text] == []


def removable() -> list[dict[str, Any]]:
    """An empty node, one whose pod fits on another, and one that a cheaper node can replace."""
    claims = [part for name in ("empty", "moved", "replaced") for part in node_and_claim(name)]
    pods = [running("one", "moved"), running("two", "replaced", cpu="2")]
    disruption = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"}
    return [node_pool(disruption=disruption), *claims, *pods]


def test_why_nodes_go_is_said_in_podiums_words(tmp_path: Path, types: Path) -> None:
    arguments = ("consolidate", "-f", _cluster(tmp_path / "c", *removable()), "--catalogue", types, "--rules")
    for text in (*_answers(*arguments, "podium"), *_answers(*arguments, "podium", "--why", "moved")):
        assert [karpenter for karpenter in KARPENTERS if karpenter in text] == []
    own, karpenters = (json.loads(next(_answers(*arguments, rules)))["commands"] for rules in ("podium", "karpenter"))
    assert [command["reason"] for command in own] == ["Empty", "Pods fit elsewhere", "Pods fit elsewhere"]
    assert [command["reason"] for command in karpenters] == ["Empty", "Underutilized", "Underutilized"]
    assert "karpenter.kwok.sh/kwoknodeclass" in json.dumps(karpenters)


def test_what_a_budget_keeps_is_said_in_podiums_words(tmp_path: Path, types: Path) -> None:
    pool, *other_objects = removable()
    pool["spec"]["disruption"]["budgets"] = [{"nodes": "0"}]
    arguments = ("consolidate", "-f", _cluster(tmp_path / "c", pool, *other_objects), "--catalogue", types, "--rules")
    for text in _answers(*arguments, "podium"):
        assert "allow no more nodes to go: Pods fit elsewhere" in text
        assert [karpenter for karpenter in KARPENTERS if karpenter in text] == []
    assert all("allow no more nodes to go: Underutilized" in text for text in _answers(*arguments, "karpenter"))


FAMILY = "karpenter.kwok.sh/instance-family"


@pytest.mark.parametrize(
    ("pool", "asking", "keys_shown"),
    [
        (node_pool(), {}, []),
        (node_pool(), {"nodeSelector": {FAMILY: "d"}}, [FAMILY]),
        (node_pool(requirements=[requirement(FAMILY, "In", "d")]), {}, [FAMILY]),
    ],
    ids=["unasked", "a pod's", "a NodePool's"],
)
def test_labels_of_karpenters_simulated_provider_are_shown_only_if_asked_for(
    tmp_path: Path, types: Path, pool: dict[str, Any], asking: dict[str, Any], keys_shown: list[str]
) -> None:
    cluster = _cluster(tmp_path / "c", pool, pod("web", cpu="3", **asking))
    arguments = ("plan", "-f", cluster, "--catalogue", types, "--rules")
    (bought,) = json.loads(next(_answers(*arguments, "podium")))["new_nodes"]
    keys = [form["key"] for form in bought["requirements"]]
    assert [key for key in keys if key.startswith("karpenter.kwok.sh/")] == keys_shown
    assert {"karpenter.sh/nodepool", CAPACITY_TYPE} <= set(keys)
    (bought,) = json.loads(next(_answers(*arguments, "karpenter")))["new_nodes"]
    assert "karpenter.kwok.sh/kwoknodeclass" in [form["key"] for form in bought["requirements"]]
