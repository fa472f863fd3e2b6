"""What the searches of one cluster share changes no answer."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import podium
from podium.insight.applied_edits import EditsDoNotApplyError
from podium.insight.edits import Edit, EditKind, node_edit
from podium.insight.fixes import fixes_for
from podium.insight.json_patch import operation, pointer
from podium.insight.node_edits import label_edits
from podium.insight.search_basis import SearchBasis
from podium.objects.core import Node
from podium.objects.resource_types import NODES
from tests.manifests import HOSTNAME, ZONE, Json, node, pod


def _requirement(random: Random) -> Json:
    key, operator = random.choice(("disk", "rank", HOSTNAME, ZONE)), random.choice(("In", "NotIn", "Exists", "Gt"))
    values = {"Exists": [], "Gt": ["3"]}.get(operator, random.sample(["ssd", "hdd", "a", "n1", "5"], 2))
    return {"key": key, "operator": operator, "values": values}


def _objects(random: Random) -> list[Json]:
    objects = []
    for index in range(random.choice((3, 6))):
        labels = {ZONE: random.choice("ab"), "disk": random.choice(("ssd", "hdd")), "rank": str(random.randint(1, 6))}
        taints = [{"key": "gpu", "value": "a", "effect": "NoSchedule"}] if random.random() < 0.3 else []
        is_cordoned = random.random() < 0.2
        objects.append(node(f"n{index}", "4", labels=labels, taints=taints, unschedulable=is_cordoned))
        objects.append(pod(f"on-{index}", "2", node=f"n{index}", scheduler=None))
    return objects


def _pod(random: Random, name: str) -> Json:
    spec: dict[str, Any] = {}
    if random.random() < 0.5:
        key, value = random.choice((("disk", "nvme"), (HOSTNAME, "none"), (ZONE, "c")))
        spec["nodeSelector"] = {key: value}
    if random.random() < 0.5:
        terms = [{"matchExpressions": [_requirement(random)]} for _ in range(random.choice((1, 2)))]
        affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec["affinity"] = {"nodeAffinity": affinity}
    return pod(name, random.choice(("1", "3", "9")), scheduler=None, **spec)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_several_searches_of_one_cluster_answer_as_each_would_alone(seed: int) -> None:
    random = Random(seed)
    cluster = podium.Cluster.load(_objects(random))
    basis = SearchBasis(cluster)
    for number in range(4):
        world, subject = cluster.asked(_pod(random, f"pod-{number}"))
        answer = fixes_for(world, subject, 5, basis=basis).as_dict(explain=True)
        assert answer == fixes_for(cluster, subject, 5).as_dict(explain=True)


def _label_edits(node_of_world: Node, **labels: str) -> list[Edit]:
    return label_edits(node_of_world, labels)


def _orders(world: podium.Cluster) -> list[str]:
    snapshot = world.engine_to_ask.cache.snapshot()
    return [snapshot.name(row) for row in snapshot.order.tolist()]


@pytest.mark.parametrize("label", ["disk", ZONE])
def test_edits_of_a_node_are_taken_back(label: str) -> None:
    cluster = podium.Cluster.load([node(name, labels={ZONE: zone}) for name, zone in (("n1", "a"), ("n2", "a"))])
    basis, former_order = SearchBasis(cluster), _orders(cluster)
    (first, _) = cluster.nodes
    with basis.world_after(_label_edits(first, **{label: "x"})) as world:
        edited_node = world.store.get(NODES, "n1")
        assert edited_node is not None
        assert edited_node.metadata.labels[label] == "x"
    with basis.world_after(_label_edits(first, other="y")) as world:
        edited_node = world.store.get(NODES, "n1")
        assert edited_node is not None
        assert edited_node.metadata.labels == {**first.metadata.labels, "other": "y"}
        assert _orders(world) == former_order


def test_edits_that_do_not_apply_leave_nothing_behind() -> None:
    cluster = podium.Cluster.load([node("n1")])
    basis = SearchBasis(cluster)
    wrong = node_edit(EditKind.REMOVE_TAINT, cluster.nodes[0], [operation("remove", pointer("spec", "taints", 7))], "")
    with pytest.raises(EditsDoNotApplyError), basis.world_after([*_label_edits(cluster.nodes[0], disk="x"), wrong]):
        pass
    with basis.world_after(_label_edits(cluster.nodes[0], rank="1")) as world:
        edited_node = world.store.get(NODES, "n1")
        assert edited_node is not None
        assert "disk" not in edited_node.metadata.labels
