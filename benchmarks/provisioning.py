"""Plans of nodes to buy: Karpenter's own benchmark, and the same pods with several NodePools and nodes that are there.

Times are those of one process, planning alone: the objects are read before.

Source: karpenter pkg/controllers/provisioning/scheduling/scheduling_benchmark_test.go (makeDiversePods) and
pkg/cloudprovider/fake/instancetype.go (InstanceTypes), v1.15.0, for the mix of pods and the instance types.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from rich.table import Table

from benchmarks.nodes import Json
from benchmarks.targets import Check, at_most
from podium.provisioner.catalogue import Catalogue, read_catalogue
from podium.provisioner.objects import ClusterObjects
from podium.provisioner.provisioning import plan_provisioning
from podium.provisioner.reading import read_objects
from podium.provisioner.settings import Settings

INSTANCE_TYPES: Final = 400
NOW: Final = 1_780_000_000.0
GROWTH_MAX: Final = 1.3

_ZONE = "topology.kubernetes.io/zone"
_HOSTNAME = "kubernetes.io/hostname"
_CAPACITY_TYPE = "karpenter.sh/capacity-type"
_OFFERED = (("spot", 1), ("spot", 2), ("on-demand", 1), ("on-demand", 2), ("on-demand", 3))
_LABELS = "abcdefg"
_CPU_MILLI = (100, 250, 500, 1000, 1500)
_MEMORY_MIB = (100, 256, 512, 1024, 2048, 4096)


@dataclass(frozen=True, slots=True)
class Question:
    """What to plan, and the most CPU time that it may take."""

    name: str
    pods: int
    pools: int = 1
    nodes: int = 0
    node_cpu: int = 16
    cpu_s_max: float = 0.0


QUESTIONS: Final = (
    Question("diverse", 2_000, cpu_s_max=1.7),
    Question("diverse", 10_000, cpu_s_max=12.0),
    Question("diverse", 20_000, cpu_s_max=20.0),
    Question("four pools", 2_000, pools=4, nodes=50, cpu_s_max=0.5),
    Question("nodes there", 2_000, nodes=500, cpu_s_max=0.5),
)


@dataclass(frozen=True, slots=True)
class Planned:
    """One plan. Units: seconds of CPU."""

    name: str
    pods: int
    claims: int
    on_nodes: int
    errors: int
    cpu_s: float


def measure(question: Question) -> Planned:
    """Plan once."""
    objects, catalogue = cluster_of(question), instance_types()
    gc.collect()
    began_s = time.process_time()
    plan = plan_provisioning(objects, catalogue, Settings(), NOW)
    cpu_s = time.process_time() - began_s
    on_nodes = sum(map(len, plan["existing"].values()))
    return Planned(question.name, question.pods, len(plan["claims"]), on_nodes, len(plan["errors"]), cpu_s)


def checks(plans: Mapping[tuple[str, int], Planned]) -> Iterator[Check]:
    """What a set of plans has to reach."""
    for each in QUESTIONS:
        found = plans.get((each.name, each.pods))
        if found is not None:
            yield at_most(f"{each.name}, {each.pods:,} pods: CPU s", found.cpu_s, each.cpu_s_max)
    few, many = plans.get(("diverse", 2_000)), plans.get(("diverse", 20_000))
    if few is not None and many is not None:
        yield at_most("growth from 2,000 to 20,000 pods, for each pod", many.cpu_s / few.cpu_s / 10, GROWTH_MAX)


def table(plans: Iterable[Planned]) -> Table:
    """The figures for people."""
    found = Table("pods", "", "nodes to buy", "onto nodes", "left", "CPU s", "us per pod")
    for each in plans:
        counts = (f"{count:,}" for count in (each.claims, each.on_nodes, each.errors))
        found.add_row(f"{each.pods:,}", each.name, *counts, f"{each.cpu_s:.2f}", f"{each.cpu_s / each.pods * 1e6:.0f}")
    return found


# ------------------------------------------------------------ the cluster


def instance_types(count: int = INSTANCE_TYPES) -> Catalogue:
    """The first has one core, 2 GiB and room for 10 pods, the second twice as much, and so on."""
    return read_catalogue([_instance_type(size) for size in range(1, count + 1)])


def cluster_of(question: Question) -> ClusterObjects:
    """The waiting pods, the NodePools and the nodes."""
    pools = [_pool(f"pool-{index}") for index in range(question.pools)]
    nodes = [_node(index, question.node_cpu) for index in range(question.nodes)]
    return read_objects([*pools, *nodes, *diverse_pods(question.pods)])


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


def _pool(name: str) -> Json:
    node_class = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    states = ("ValidationSucceeded", "NodeClassReady", "Ready")
    return {
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "limits": {"cpu": "10000000", "memory": "10000000Gi"},
            "template": {"spec": {"nodeClassRef": node_class}},
        },
        "status": {"conditions": [{"type": each, "status": "True"} for each in states]},
    }


def _node(index: int, cpu: int) -> Json:
    name = f"node-{index:04d}"
    amounts = {"cpu": str(cpu), "memory": f"{2 * cpu}Gi", "pods": "110"}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {_HOSTNAME: name, _ZONE: f"test-zone-{index % 3 + 1}"}},
        "status": {"allocatable": amounts, "capacity": amounts},
    }
