"""Builds small random clusters from a seed, with a bit of everything that plugins depend on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from podium.objects.core import Node, Pod
from podium.objects.node_metrics import CPU_LOAD, MEMORY_LOAD, NodeMetricsReport
from podium.testing.builders import ZONE_LABEL, node, node_metrics, pod

_GPU = "example.com/gpu"
# Numbers as well, for the operators Gt and Lt, and the empty value, which differs from no label.
_DISKS = ("ssd", "hdd", "1", "20", "")
_LOADS = (CPU_LOAD, MEMORY_LOAD)
_APPS = ("web", "db", "cache")
_IMAGES = ("app:1", "app:latest", "db:1")
_EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
_HOSTNAME_LABEL = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class RandomCluster:
    """Nodes, pods on them, and incoming pods."""

    nodes: tuple[Node, ...]
    existing_pods: tuple[Pod, ...]
    incoming: tuple[Pod, ...]


def random_cluster(random: Random) -> RandomCluster:
    """Build one to six nodes, with up to a dozen pods on them, and three incoming pods."""
    size = random.randint(1, 6)
    nodes = tuple(_node(random, f"n{index}") for index in range(size))
    existing_pods = (
        _pod(random, f"placed-{index}", f"n{random.randrange(size)}") for index in range(random.randint(0, 12))
    )
    return RandomCluster(nodes, tuple(existing_pods), tuple(_pod(random, f"incoming-{index}") for index in range(3)))


def random_metrics(random: Random, nodes: Iterable[Node]) -> NodeMetricsReport:
    """Build measured loads of some of the nodes."""
    measured_nodes = [item.name for item in nodes if random.random() < 0.8]
    loads = {
        name: {kind: random.uniform(0, 110) for kind in _LOADS if random.random() < 0.8} for name in measured_nodes
    }
    deviations = {name: {kind: random.uniform(0, 50) for kind in _LOADS} for name in measured_nodes[::2]}
    return node_metrics(loads, deviations=deviations, end=random.choice((0, 1 << 40)))


def _node(random: Random, name: str) -> Node:
    labels = {_HOSTNAME_LABEL: name}
    if random.random() < 0.7:
        labels["disk"] = random.choice(_DISKS)
    return node(
        name,
        # Few enough that some nodes are full.
        cpu=f"{random.randint(0, 8000)}m",
        memory=f"{random.randint(0, 16384)}Mi",
        pods=random.choice((2, 5, 110)),
        allocatable={_GPU: random.randint(0, 4), "ephemeral-storage": f"{random.randint(0, 100)}Gi"},
        zone=random.choice((None, "a", "b", "c")),
        labels=labels,
        taints=[_taint(random) for _ in range(random.choice((0, 0, 1, 2)))],
        unschedulable=random.random() < 0.15,
        images={image: random.randint(1, 2 << 30) for image in random.sample(_IMAGES, random.randint(0, 2))},
    )


def _taint(random: Random) -> dict[str, str]:
    return {"key": "dedicated", "value": random.choice(("gpu", "web")), "effect": random.choice(_EFFECTS)}


def _pod(random: Random, name: str, node_name: str = "") -> Pod:
    requests: dict[str, str | int] = {
        "cpu": f"{random.randint(1, 3000)}m",
        "memory": f"{random.randint(1, 4096)}Mi",
        _GPU: 1,
    }
    return pod(
        name,
        node=node_name,
        requests={key: requests[key] for key in requests if random.random() < 0.6},
        labels={"app": random.choice(_APPS)},
        priority=random.choice((None, 0, 10)),
        host_ports=random.choice(((), (), (8080,), (8080, 9090))),
        images=random.sample(_IMAGES, random.randint(1, 2)),
        tolerations=random.choice(([], [{"key": "dedicated", "operator": "Exists"}], [{"operator": "Exists"}])),
        affinity=_affinity(random),
        spec={
            "nodeSelector": {"disk": random.choice(_DISKS)} if random.random() < 0.2 else {},
            "topologySpreadConstraints": [_spread(random)] if random.random() < 0.4 else [],
        },
    )


def _affinity(random: Random) -> dict[str, Any] | None:
    if random.random() < 0.3:
        return None
    kind = random.choice(("nodeAffinity", "podAffinity", "podAntiAffinity"))
    required_field, preferred_field = (
        f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred")
    )
    if kind == "nodeAffinity":
        operator = random.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        values = random.sample(_DISKS, 2) if operator in ("In", "NotIn") else []
        term = {"matchExpressions": [{"key": "disk", "operator": operator, "values": values}]}
        weighted_term = {"weight": random.randint(1, 100), "preference": term}
        return {
            kind: {required_field: {"nodeSelectorTerms": [term]}}
            if random.random() < 0.5
            else {preferred_field: [weighted_term]}
        }
    affinity_term = {
        "labelSelector": {"matchLabels": {"app": random.choice(_APPS)}},
        "topologyKey": random.choice((ZONE_LABEL, _HOSTNAME_LABEL)),
    }
    weighted_term = {"weight": random.randint(1, 100), "podAffinityTerm": affinity_term}
    return {kind: {required_field: [affinity_term]} if random.random() < 0.5 else {preferred_field: [weighted_term]}}


def _spread(random: Random) -> dict[str, Any]:
    return {
        "maxSkew": random.randint(1, 2),
        "topologyKey": random.choice((ZONE_LABEL, _HOSTNAME_LABEL)),
        "whenUnsatisfiable": random.choice(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": {"matchLabels": {"app": random.choice(_APPS)}},
    }
