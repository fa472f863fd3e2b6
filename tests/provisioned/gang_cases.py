"""Random clusters in which gangs wait for nodes, each from a seed: limits, zones, devices, and pods beside them.

Nodes and pods have 2 GiB for each core, so that only how full a node is decides where kube-scheduler places a pod.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from tests import gang_manifests, manifests
from tests.gang_manifests import COSCHEDULING, UPSTREAM
from tests.manifests import ZONE, Json
from tests.provisioned.clusters import CAPACITY_TYPE
from tests.unit.provisioner.clusters import node_pool

DRIVER: Final = "gpu.example.com"
ZONES: Final = ("zone-a", "zone-b", "zone-c")
SLOTS: Final = 20
"""How many pods a node takes."""


@dataclass(frozen=True)
class Kind:
    """An instance type in a zone.

    Attributes:
        cpu: Cores.
        gpus: Devices.
    """

    name: str
    zone: str
    cpu: int
    gpus: int
    price: float


@dataclass(frozen=True)
class Unit:
    """Pods that start together: a gang, or one pod.

    Attributes:
        cpu, gpus: What each of them requests: millicores, and devices.
        min_count: How many must have a node.
        tied: Whether all of their nodes must lie in one zone.
    """

    name: str
    cpu: int
    gpus: int
    count: int
    min_count: int
    priority: int = 0
    tied: bool = False

    @property
    def pods(self) -> list[str]:
        """The names of its pods, in order."""
        return [f"{self.name}-{index}" for index in range(self.count)]


@dataclass(frozen=True)
class Case:
    """A cluster.

    Attributes:
        old_nodes: By node that is there, its zone and its cores.
        limits: Of the NodePool: `nodes` and `cpu`.
        api: The API group of its PodGroups.
    """

    kinds: tuple[Kind, ...]
    units: tuple[Unit, ...]
    old_nodes: dict[str, tuple[str, int]] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    api: str = UPSTREAM

    @property
    def objects(self) -> list[Json]:
        """What an API server has."""
        return [*self.objects_beside, *(pod for pods in self.pods_in_turn for pod in pods)]

    @property
    def pods_in_turn(self) -> list[list[Json]]:
        """The pods of each unit, in the order in which they are tried."""
        units = sorted(self.units, key=lambda unit: (-unit.priority, unit.name))
        return [[manifest for manifest in self._pods(unit) if manifest["kind"] == "Pod"] for unit in units]

    @property
    def objects_beside(self) -> list[Json]:
        """All but the pods."""
        nodes = [
            manifests.node(name, str(cpu), memory=f"{2 * cpu}Gi", pods=str(SLOTS), labels={ZONE: zone})
            for name, (zone, cpu) in self.old_nodes.items()
        ]
        groups = [self._group(unit) for unit in self.units if unit.count > 1]
        claims = [manifest for unit in self.units for manifest in self._pods(unit) if manifest["kind"] != "Pod"]
        device_class = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "gpu"},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
        }
        return [*nodes, device_class, *groups, *claims]

    @property
    def pool(self) -> Json:
        """The NodePool."""
        limits = {name: str(amount) for name, amount in self.limits.items()}
        return {"apiVersion": "karpenter.sh/v1", **node_pool("pool", limits=limits or None)}

    @property
    def catalogue(self) -> list[Json]:
        """The instance types."""
        names = dict.fromkeys(kind.name for kind in self.kinds)
        return [_instance_type([kind for kind in self.kinds if kind.name == name]) for name in names]

    def _group(self, unit: Unit) -> Json:
        spec: Json = {"priority": unit.priority} if self.api == UPSTREAM else {}
        if unit.tied:
            spec["schedulingConstraints"] = {"topology": [{"key": ZONE}]}
        return gang_manifests.group(self.api, unit.min_count, unit.name, **spec)

    def _pods(self, unit: Unit) -> list[Json]:
        objects: list[Json] = []
        for name in unit.pods:
            spec: dict[str, Any] = {"priority": unit.priority, "preemptionPolicy": "Never"}
            if unit.gpus:
                spec["resourceClaims"] = [{"name": "gpus", "resourceClaimName": name}]
                objects.append(_claim(name, unit.gpus))
            fields: Json = {"memory": f"{2 * unit.cpu * 1024 // 1000}Mi", "scheduler": None, **spec}
            cpu = f"{unit.cpu}m"
            is_gang = unit.count > 1
            objects.append(
                gang_manifests.member(self.api, name, unit.name, cpu, **fields)
                if is_gang
                else manifests.pod(name, cpu, **fields)
            )
        return objects


def random_case(seed: int) -> Case:
    """A case that a purchase of at most six nodes settles."""
    chance = Random(seed)
    api = COSCHEDULING if chance.random() < 0.3 else UPSTREAM
    zones = ZONES[: chance.randint(1, 3)]
    sizes = chance.sample((2, 4, 8), chance.randint(1, 2))
    kinds = [
        Kind(f"c-{cpu}", zone, cpu, 0, round(cpu * chance.uniform(0.08, 0.12), 4)) for cpu in sizes for zone in zones
    ]
    has_gpus = chance.random() < 0.4
    if has_gpus:
        gpus = chance.choice((2, 4))
        kinds += [Kind("g-8", zone, 8, gpus, round(gpus + chance.random(), 4)) for zone in zones[:2]]
    units: list[Unit] = []
    cpu_left = 5 * max(sizes) * 1000
    for index in range(chance.randint(1, 4)):
        is_gang = index == 0 or chance.random() < 0.5
        count = chance.randint(2, 4) if is_gang else 1
        cpu = min(chance.choice((500, 1000, 1500, 2000, 3500, 5000)), cpu_left // count // 500 * 500)
        if not cpu:
            break
        cpu_left -= cpu * count
        min_count = count if chance.random() < 0.7 else chance.randint(1, count)
        units.append(
            Unit(
                f"u{index}",
                cpu,
                chance.choice((0, 1, 2)) if has_gpus else 0,
                count,
                min_count,
                priority=chance.choice((0, 0, 10)),
                tied=is_gang and api == UPSTREAM and chance.random() < 0.4,
            )
        )
    old_nodes = {f"old-{index}": (chance.choice(zones), chance.choice((2, 4))) for index in range(chance.randint(0, 2))}
    limits: dict[str, int] = {}
    if chance.random() < 0.5:
        limits["nodes"] = chance.randint(1, 5)
    elif chance.random() < 0.5:
        limits["cpu"] = chance.choice((4, 8, 12, 16, 24))
    else:
        limits["nodes"] = 6
    return Case(
        tuple(sorted(kinds, key=lambda kind: (kind.price, kind.name, kind.zone))), tuple(units), old_nodes, limits, api
    )


def _claim(name: str, count: int) -> Json:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    request = {"name": "gpus", "exactly": exactly}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }


def _instance_type(kinds: list[Kind]) -> Json:
    first = kinds[0]
    return {
        "name": first.name,
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {"cpu": str(first.cpu), "memory": f"{2 * first.cpu}Gi", "pods": str(SLOTS)},
        "overhead": {},
        "devices": {DRIVER: {"count": first.gpus, "attributes": {"model": "a"}}} if first.gpus else {},
        "offerings": [
            {
                "price": kind.price,
                "requirements": [
                    {"key": CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]},
                    {"key": ZONE, "operator": "In", "values": [kind.zone]},
                ],
            }
            for kind in kinds
        ],
    }
