"""Removals by podium's own plugins: the same nodes as by Karpenter's rules, unless podium places pods otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from podium.cli.options.configuration import usable
from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.planners.placing_planner import PlacingPlanner
from podium.provisioner.planners.planner import Planner
from podium.provisioner.state.settings import Settings
from tests.gang_manifests import UPSTREAM, group
from tests.unit.provisioner.clusters import (
    CAPACITY_TYPE,
    NOW,
    catalogue,
    daemon_set,
    owned_by,
    pod,
    read_with_groups,
    requirement,
)
from tests.unit.provisioner.fleets import INSTANCE_TYPE, TYPES, cluster, machine, node_pool

BY_KARPENTER = Planner(catalogue(*TYPES), Settings())
STAYS = frozenset({"b"})


def objects(*parts: object) -> ClusterObjects:
    pool = node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "on-demand")])
    return read_with_groups(cluster(*parts, pool))  # type: ignore[arg-type]


def planner(path: Path, *instance_types: str) -> PlacingPlanner:
    """podium, whose pods go to nodes of these instance types only, if any are named."""
    affinity = {"nodeSelectorTerms": [{"matchExpressions": [requirement(INSTANCE_TYPE, "In", *instance_types)]}]}
    args = {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": affinity}} if instance_types else {}
    profile = {"schedulerName": "default-scheduler", "pluginConfig": [{"name": "NodeAffinity", "args": args}]}
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    path.write_text(yaml.safe_dump({**config, "profiles": [profile]}))
    good = usable(path, (), to_run=False)
    return PlacingPlanner(BY_KARPENTER, good.config, good.plugins)


def test_a_node_stays_whose_pods_podium_would_not_place_elsewhere(tmp_path: Path) -> None:
    cluster_objects = objects(machine("a"), machine("b", 8), pod("web", node="a", cpu="3"), pod("b-1", node="b"))
    removal = BY_KARPENTER.removal(cluster_objects, NOW, STAYS)
    assert removal is not None
    assert removal.nodes == ("a",)
    podium = planner(tmp_path / "any.yaml").removal(cluster_objects, NOW, STAYS)
    assert podium is not None
    assert (podium.nodes, list(podium.moves)) == (("a",), ["b"])
    strict = planner(tmp_path / "strict.yaml", "c-4")
    assert strict.removal(cluster_objects, NOW, STAYS) is None
    assert strict.validate(removal, cluster_objects, NOW, STAYS) == (
        "validating command, scheduling simulation produced new results"
    )


@pytest.mark.parametrize(("cpu", "goes"), [("1", True), ("2", False)])
def test_the_pods_of_a_daemon_set_stay_and_keep_their_room(tmp_path: Path, cpu: str, goes: bool) -> None:
    """One core is free beside the agent of the other node; the agent of the node that goes needs no place."""
    agents = [pod(f"agent-{name}", node=name, metadata=owned_by("DaemonSet", "agent")) for name in "ab"]
    other_pods = [pod("web", node="a", cpu=cpu), pod("b-1", node="b", cpu="2")]
    cluster_objects = objects(machine("a"), machine("b"), daemon_set(), *agents, *other_pods)
    removal = planner(tmp_path / "any.yaml").removal(cluster_objects, NOW, STAYS)
    assert (removal is not None) is goes


def _gang(*nodes: str) -> list[dict[str, object]]:
    return [pod(f"train-{name}", node=name, schedulingGroup={"podGroupName": "train"}) for name in nodes]


def test_a_removal_is_objected_to_once_it_would_break_a_gang(tmp_path: Path) -> None:
    podium = planner(tmp_path / "any.yaml")
    nodes = [*machine("a"), *machine("b", 8), *machine("c", 8), group(UPSTREAM, 2)]
    first_objects = objects(nodes, _gang("a", "b", "c"))
    removal = podium.removal(first_objects, NOW, frozenset("bc"))
    assert removal is not None
    assert (removal.nodes, removal.warnings, podium.objection(removal, first_objects)) == (("a",), (), "")
    # Meanwhile one of the other members has ended.
    text = "the gang default/train needs 2 of its pods, and 1 would be left while others move"
    assert podium.objection(removal, objects(nodes, _gang("a", "b"))) == text
    assert BY_KARPENTER.objection(removal, objects(nodes, _gang("a", "b"))) == ""
