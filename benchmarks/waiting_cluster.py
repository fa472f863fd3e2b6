"""Clusters in which pods wait for nodes: the pods of Karpenter's own benchmark, its instance types, NodePools, nodes.

They are written as the files that `podium plan --cases` reads.

Source: karpenter pkg/controllers/provisioning/scheduling/scheduling_benchmark_test.go (makeDiversePods) and
pkg/cloudprovider/fake/instancetype.go (InstanceTypes), v1.15.0, for the mix of pods and the instance types.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Final

from benchmarks.nodes import Json

INSTANCE_TYPES: Final = 400

_ZONE = "topology.kubernetes.io/zone"
_HOSTNAME = "kubernetes.io/hostname"
_CAPACITY_TYPE = "karpenter.sh/capacity-type"
_OFFERED = (("spot", 1), ("spot", 2), ("on-demand", 1), ("on-demand", 2), ("on-demand", 3))
_LABELS = "abcdefg"
_CPU_MILLI = (100, 250, 500, 1000, 1500)
_MEMORY_MIB = (100, 256, 512, 1024, 2048, 4096)
_CATALOGUE = "fake"


def write_case(path: Path, pods: int, pools: int, nodes: int, node_cpu: int) -> None:
    """A catalogue, and the question which nodes to buy."""
    objects = [
        *(pool(f"pool-{index}") for index in range(pools)),
        *(_node(index, node_cpu) for index in range(nodes)),
        *diverse_pods(pods),
    ]
    question = {"id": "bench", "kind": "solve", "now": "2026-06-01T00:00:00Z", "objects": objects}
    lines = ({"instanceTypes": instance_types(), "catalogue": _CATALOGUE}, {**question, "catalogue": _CATALOGUE})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def instance_types(count: int = INSTANCE_TYPES) -> list[Json]:
    """The first has one core, 2 GiB and room for 10 pods, the second twice as much, and so on."""
    return [_instance_type(size) for size in range(1, count + 1)]


def diverse_pods(count: int, seed: int = 42) -> list[Json]:
    """Equal parts: plain, spread by zone, spread by hostname, near each other by zone, apart by hostname."""
    random = Random(seed)
    part = count // 5
    kinds = (
        ["plain"] * (count - 4 * part) + ["zone spread"] * part + ["hostname spread"] * part
        + ["affinity"] * part + ["anti-affinity"] * part
    )  # fmt: skip
    return [_pod(index, kind, random) for index, kind in enumerate(kinds)]


def _pod(index: int, kind: str, random: Random) -> Json:
    labels, spec = {"my-label": random.choice(_LABELS)}, {}
    if kind.endswith("spread"):
        rule = {
            "maxSkew": 1,
            "topologyKey": _ZONE if kind.startswith("zone") else _HOSTNAME,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"my-label": random.choice(_LABELS)}},
        }
        spec = {"topologySpreadConstraints": [rule]}
    elif kind == "affinity":
        labels = {"my-affinity": random.choice(_LABELS)}
        spec = {"affinity": {"podAffinity": _near(labels, _ZONE)}}
    elif kind == "anti-affinity":
        labels = {"app": "nginx"}
        spec = {"affinity": {"podAntiAffinity": _near(labels, _HOSTNAME)}}
    requests = {"cpu": f"{random.choice(_CPU_MILLI)}m", "memory": f"{random.choice(_MEMORY_MIB)}Mi"}
    return {
        "kind": "Pod",
        "metadata": {"name": f"pod-{index:06d}", "namespace": "default", "uid": f"{index:06d}", "labels": labels},
        "spec": {"containers": [{"name": "main", "resources": {"requests": requests}}], **spec},
        "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
    }


def _near(labels: Json, key: str) -> Json:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _instance_type(size: int) -> Json:
    price = 0.1 * size + 0.1 * 2 * size * 2**30 / 1e9
    return {
        "name": f"fake-it-{size - 1}",
        "architecture": "amd64",
        "operatingSystems": ["linux", "windows", "darwin"],
        "resources": {"cpu": str(size), "memory": f"{2 * size}Gi", "pods": str(10 * size)},
        "offerings": [
            {
                "price": price,
                "requirements": [
                    {"key": _CAPACITY_TYPE, "operator": "In", "values": [kind]},
                    {"key": _ZONE, "operator": "In", "values": [f"test-zone-{zone}"]},
                ],
            }
            for kind, zone in _OFFERED
        ],
    }


def pool(name: str) -> Json:
    """A NodePool whose limits are never reached."""
    node_class = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    states = ("ValidationSucceeded", "NodeClassReady", "Ready")
    return {
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "limits": {"cpu": "10000000", "memory": "10000000Gi"},
            "template": {"spec": {"nodeClassRef": node_class}},
        },
        "status": {"conditions": [{"type": state, "status": "True"} for state in states]},
    }


def _node(index: int, cpu: int) -> Json:
    name = f"node-{index:04d}"
    amounts = {"cpu": str(cpu), "memory": f"{2 * cpu}Gi", "pods": "110"}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {_HOSTNAME: name, _ZONE: f"test-zone-{index % 3 + 1}"}},
        "status": {"allocatable": amounts, "capacity": amounts},
    }
