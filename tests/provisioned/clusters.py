"""Random clusters to plan for, each from a seed: nodes, NodePools, a small catalogue, and pods that wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from podium.provisioner.cloudprovider.catalogue import Catalogue, read_catalogue
from podium.provisioner.state.manifests import ANY_NODE_CLASS
from tests import manifests
from tests.manifests import HOSTNAME, ZONE, Json

NAMESPACE: Final = "default"
SCHEDULER: Final = "default-scheduler"
ZONES: Final = ("zone-a", "zone-b", "zone-c")
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
TIER: Final = "example.com/tier"
DEDICATED: Final = {"key": "example.com/dedicated", "value": "batch", "effect": "NoSchedule"}
_APPS: Final = ("web", "db", "batch")
_SIZES: Final = ((1, 2), (2, 4), (4, 8), (8, 16), (4, 32))
"""Cores and GiB."""


@dataclass(frozen=True, slots=True)
class PlannedCluster:
    """What is there, and what can be bought.

    Attributes:
        objects: What an API server has.
        pools: NodePools, which no scheduler reads.
    """

    objects: tuple[Json, ...]
    pools: tuple[Json, ...]
    catalogue: Catalogue

    @property
    def waiting(self) -> tuple[str, ...]:
        """The names of the pods that wait."""
        return tuple(
            manifest["metadata"]["name"]
            for manifest in self.objects
            if manifest["kind"] == "Pod" and "nodeName" not in manifest["spec"]
        )


def planned_cluster(seed: int) -> PlannedCluster:
    """A cluster of at most eight nodes, with 3 to 25 pods that wait."""
    chance = Random(seed)
    pools = tuple(_pool(f"pool-{index}", chance) for index in range(chance.randint(1, 3)))
    nodes = [_node(index, chance) for index in range(chance.randint(0, 8))]
    running = [pod for node in nodes for pod in _running(node, chance)]
    waiting: list[Json] = []
    volumes: list[Json] = []
    for index in range(chance.randint(3, 25)):
        waiting.append(any_pod(f"new-{index}", chance))
        if chance.random() < 0.06:
            volumes += _volume(waiting[-1], chance)
    daemons = [daemon_set(chance)] if chance.random() < 0.4 else []
    on_nodes = [daemon_pod(daemon, node["metadata"]["name"]) for daemon in daemons for node in nodes]
    return PlannedCluster((*nodes, *daemons, *volumes, *on_nodes, *running, *waiting), pools, small_catalogue())


DAEMON_CPU_MAX: Final = 150
"""What an agent may request, in millicores."""


def small_catalogue() -> Catalogue:
    """Five sizes in three zones, on demand and, in two zones, as spot."""
    return read_catalogue([_instance_type(cpu, memory) for cpu, memory in _SIZES])


def daemon_pod(daemon_set: Json, node: str) -> Json:
    """The pod of a DaemonSet on a node."""
    template, name = daemon_set["spec"]["template"], daemon_set["metadata"]["name"]
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": f"uid-{name}", "controller": True}
    metadata = {"name": f"{name}-{node}", "namespace": NAMESPACE, "ownerReferences": [owner]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "labels": template["metadata"]["labels"]},
        "spec": {**template["spec"], "nodeName": node},
        "status": {"phase": "Running"},
    }


def any_pod(name: str, chance: Random) -> Json:
    """A pod that waits, with some of what makes scheduling hard."""
    app = chance.choice(_APPS)
    spec: dict[str, Any] = {}
    affinity: dict[str, Any] = {}
    if chance.random() < 0.15:
        spec["nodeSelector"] = chance.choice(
            ({ZONE: chance.choice(ZONES)}, {CAPACITY_TYPE: "on-demand"}, {TIER: "gold"}, {"no": "such"})
        )
    if chance.random() < 0.12:
        key, values = chance.choice(((ZONE, ZONES[:2]), (CAPACITY_TYPE, ("spot",)), (TIER, ("gold", "iron"))))
        term = {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    if chance.random() < 0.15:
        affinity["podAntiAffinity"] = _required_affinity(app, chance.choice((HOSTNAME, HOSTNAME, ZONE)))
    elif chance.random() < 0.1:
        affinity["podAffinity"] = _required_affinity(chance.choice(_APPS), chance.choice((HOSTNAME, ZONE)))
    if affinity:
        spec["affinity"] = affinity
    if chance.random() < 0.2:
        when = chance.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"))
        spec["topologySpreadConstraints"] = [
            {
                "topologyKey": chance.choice((ZONE, HOSTNAME)),
                "maxSkew": chance.choice((1, 2)),
                "whenUnsatisfiable": when,
                "labelSelector": {"matchLabels": {"app": app}},
            }
        ]
    if chance.random() < 0.2:
        spec["tolerations"] = [{"key": DEDICATED["key"], "operator": "Exists"}]
    if chance.random() < 0.15:
        spec["priority"] = chance.choice((-10, 10, 1000))
    cpu = chance.choice((100, 250, 500, 900, 1500, 2500, 3600, 9000 if chance.random() < 0.2 else 700))
    return manifests.pod(
        name,
        f"{cpu}m",
        memory=f"{chance.choice((64, 256, 1024, 3000))}Mi",
        labels={"app": app},
        scheduler=None,
        host_port=chance.choice((8080, 8081)) if chance.random() < 0.08 else None,
        **spec,
    )


def _required_affinity(app: str, key: str) -> Json:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _node(index: int, chance: Random) -> Json:
    cpu, memory = chance.choice(_SIZES)
    labels = {ZONE: chance.choice(ZONES), CAPACITY_TYPE: "on-demand"}
    if chance.random() < 0.3:
        labels[TIER] = "gold"
    taints = [DEDICATED] if chance.random() < 0.15 else []
    return manifests.node(f"old-{index}", str(cpu), memory=f"{memory}Gi", pods="20", labels=labels, taints=taints)


def _running(node: Json, chance: Random) -> list[Json]:
    name, free = node["metadata"]["name"], 1000 * int(node["status"]["allocatable"]["cpu"]) - 200
    running_pods: list[Json] = []
    for index in range(chance.randint(0, 4)):
        cpu = chance.choice((100, 300, 800, 1500))
        if cpu > free:
            break
        free -= cpu
        app = chance.choice(_APPS)
        fields = {"priority": -100} if chance.random() < 0.1 else {}
        if chance.random() < 0.1:
            fields["affinity"] = {"podAntiAffinity": _required_affinity("db", ZONE)}
        running_pods.append(
            manifests.pod(
                f"{name}-{index}",
                f"{cpu}m",
                labels={"app": app},
                node=name,
                scheduler=None,
                status={"phase": "Running"},
                **fields,
            )
        )
    return running_pods


def _volume(pod: Json, chance: Random) -> list[Json]:
    """A volume in a zone that is bound to a claim, which the pod gets."""
    name = pod["metadata"]["name"]
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [chance.choice(ZONES)]}]}
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "claimRef": {"namespace": NAMESPACE, "name": name},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
                "hostPath": {"path": "/data"},
            },
            "status": {"phase": "Bound"},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "",
                "volumeName": name,
            },
            "status": {"phase": "Bound"},
        },
    ]


def daemon_set(chance: Random) -> Json:
    """An agent for every node."""
    labels = {"agent": "yes"}
    requests = {"cpu": f"{chance.choice((50, 100, DAEMON_CPU_MAX))}m", "memory": "50Mi"}
    spec = {
        "containers": [{"name": "main", "image": "agent", "resources": {"requests": requests}}],
        "tolerations": [{"operator": "Exists"}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": NAMESPACE},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }


def _pool(name: str, chance: Random) -> Json:
    requirements: list[Mapping[str, Any]] = []
    if chance.random() < 0.3:
        requirements.append({"key": CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]})
    if chance.random() < 0.3:
        requirements.append({"key": ZONE, "operator": "NotIn", "values": [chance.choice(ZONES)]})
    if chance.random() < 0.2:
        requirements.append({"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["t-2-4", "t-4-8"]})
    template_spec: Json = {
        "requirements": requirements,
        "nodeClassRef": {
            "group": ANY_NODE_CLASS.group,
            "kind": ANY_NODE_CLASS.kind,
            "name": ANY_NODE_CLASS.name,
        },
        "taints": [DEDICATED] if chance.random() < 0.25 else [],
    }
    labels = {TIER: chance.choice(("gold", "iron"))} if chance.random() < 0.4 else {}
    spec: Json = {"template": {"metadata": {"labels": labels}, "spec": template_spec}}
    if chance.random() < 0.25:
        spec["limits"] = {"cpu": str(chance.choice((4, 8, 20)))}
    if chance.random() < 0.5:
        spec["weight"] = chance.randint(1, 100)
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}


def _instance_type(cpu: int, memory: int) -> Json:
    price = 0.025 * cpu + 0.004 * memory
    rates = [("on-demand", zone, price) for zone in ZONES] + [("spot", zone, 0.6 * price) for zone in ZONES[:2]]
    return {
        "name": f"t-{cpu}-{memory}",
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {"cpu": str(cpu), "memory": f"{memory}Gi", "pods": "20", "ephemeral-storage": "20Gi"},
        "offerings": [
            {
                "price": cost,
                "available": True,
                "requirements": [
                    {"key": CAPACITY_TYPE, "operator": "In", "values": [kind]},
                    {"key": ZONE, "operator": "In", "values": [zone]},
                ],
            }
            for kind, zone, cost in rates
        ],
    }
