"""Random clusters: nodes, classes, and workloads that run."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tests.parity.workloads.naming import Json
from tests.parity.workloads.plan import Plan, PodPlan

NAMESPACES: Final = {"shop": "blue", "ops": "red"}
NAMES: Final = (
    "agate",
    "basil",
    "cobalt",
    "dahlia",
    "elder",
    "fennel",
    "garnet",
    "hazel",
    "iris",
    "jasper",
    "kelp",
    "larch",
    "mica",
    "nettle",
    "opal",
    "poppy",
    "quince",
    "rowan",
    "sorrel",
)
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
ZONES: Final = ("za", "zb", "zc")
DISK_DRIVER, CAPACITY_DRIVER = "disk.example.com", "cap.example.com"
GPU_DRIVER: Final = "gpu.example.com"

_TAINTS: Final = (
    {"key": "dedicated", "value": "batch", "effect": "NoSchedule"},
    {"key": "dedicated", "value": "batch", "effect": "NoSchedule"},
    {"key": "spot", "value": "true", "effect": "PreferNoSchedule"},
    {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
)
_CORDON: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


class World:
    """A cluster that is being drawn, and what is free on its nodes.

    Args:
        is_tight: nodes are small, so that more is refused and preempted.
    """

    def __init__(self, random: Random, plan: Plan, *, is_tight: bool) -> None:
        self.random, self.plan, self.is_tight = random, plan, is_tight
        self.names = random.sample(NAMES, len(NAMES))
        self.free: dict[str, list[int]] = {}
        self.classes: list[str] = []
        self.priorities: list[str] = []
        self.runtimes: list[str] = []
        self.claim_templates: list[tuple[str, str]] = []
        for namespace, team in NAMESPACES.items():
            self.add("v1", "Namespace", {"name": namespace, "labels": {"team": team}})
        for number in range(random.choice((1, 2, 3, 3, 4, 5)) + 1):
            self._add_node(f"n{number + 1}")

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def add(self, version: str, kind: str, meta: Json, **fields: Any) -> Json:
        """An object that is created first."""
        item = {"apiVersion": version, "kind": kind, "metadata": meta, **fields}
        self.plan.settings.append(item)
        return item

    @property
    def node_names(self) -> list[str]:
        return list(self.free)

    # ------------------------------------------------------------ nodes

    def _add_node(self, name: str) -> None:
        node = self.draw_node(name)
        amounts = node["status"]["allocatable"]
        self.plan.nodes.append(node)
        self.free[name] = [int(amounts["cpu"][:-1]), int(amounts["memory"][:-2]), int(amounts["pods"])]

    def draw_node(self, name: str) -> Json:
        """A node that is not there yet."""
        random = self.random
        cpu = random.randrange(1500, 4200) if self.is_tight else random.randrange(2800, 8200)
        memory = random.randrange(3000, 7000) if self.is_tight else random.randrange(6000, 20000)
        pods = random.choice((4, 6, 12, 110) if self.is_tight else (12, 110, 110))
        labels = {
            HOSTNAME: name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": random.choice(("amd64", "amd64", "arm64")),
            ZONE: random.choice(ZONES),
            "disk": random.choice(("ssd", "hdd")),
        }
        spec: Json = {}
        if self.chance(0.2):
            spec["taints"] = [dict(random.choice(_TAINTS))]
        if self.chance(0.07):
            spec["unschedulable"] = True
            spec.setdefault("taints", []).append(dict(_CORDON))
        amounts = {
            "cpu": f"{cpu}m",
            "memory": f"{memory}Mi",
            "pods": str(pods),
            "ephemeral-storage": f"{random.randrange(20, 80)}Gi",
        }
        status = {
            "capacity": amounts,
            "allocatable": dict(amounts),
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        }
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        return {**node, "spec": spec, "status": status}

    def place(self, cpu: int, memory: int) -> str:
        """A node that has so much free, which is then less; "" if there is none."""
        fitting = [name for name, (c, m, pods) in self.free.items() if c >= cpu and m >= memory and pods >= 1]
        if not fitting:
            return ""
        name = self.random.choice(fitting)
        free = self.free[name]
        free[0] -= cpu
        free[1] -= memory
        free[2] -= 1
        return name

    # ------------------------------------------------------------ classes

    def add_priorities(self) -> None:
        """Add PriorityClasses once: one may be the default, and one may forbid preemption."""
        if self.priorities:
            return
        values = {"low": -10, "usual": 50, "high": 1000}
        default = self.random.choice(("usual", "low", "", ""))
        for name, value in values.items():
            fields: Json = {"value": value}
            if name == default:
                fields["globalDefault"] = True
            if name == "high" and self.chance(0.3):
                fields["preemptionPolicy"] = "Never"
            self.add("scheduling.k8s.io/v1", "PriorityClass", {"name": name}, **fields)
        self.priorities = [*values, "system-node-critical"]

    def add_runtime(self) -> None:
        """A RuntimeClass with some of overhead, node selector and tolerations."""
        fields: Json = {"handler": "vm"}
        if self.chance(0.7):
            amounts = {"cpu": f"{self.random.randrange(50, 500)}m", "memory": f"{self.random.randrange(50, 500)}Mi"}
            fields["overhead"] = {"podFixed": amounts}
        if self.chance(0.6):
            fields["scheduling"] = {"nodeSelector": {"disk": "ssd"}}
        if self.chance(0.4):
            toleration = {"key": "dedicated", "operator": "Exists"}
            fields.setdefault("scheduling", {})["tolerations"] = [toleration]
        self.add("node.k8s.io/v1", "RuntimeClass", {"name": "vm"}, **fields)
        self.runtimes.append("vm")

    def add_storage(self) -> None:
        """Storage classes of every kind, of which one or two may be the default; their drivers and limits."""
        class_names = self.random.sample(("std", "topo", "cap", "local", "now"), self.random.randrange(2, 6))
        self.classes = [name for name in ("std", "topo", "cap", "local", "now") if name in class_names]
        defaults = self.random.sample(self.classes, min(len(self.classes), self.random.choice((0, 1, 1, 2))))
        for name in self.classes:
            self._add_class(name, is_default=name in defaults)
        self.plan.provisioned += [name for name in self.classes if name in ("std", "topo", "cap")]
        for driver in (DISK_DRIVER, CAPACITY_DRIVER):
            spec = {"attachRequired": True, "storageCapacity": driver == CAPACITY_DRIVER}
            self.add("storage.k8s.io/v1", "CSIDriver", {"name": driver}, spec=spec)
        limit = self.random.choice((None, None, 1, 2, 3))
        for name in self.free:
            self._add_csi_node(name, limit)
        if "cap" in self.classes:
            self._add_capacities()
        if "local" in self.classes:
            for number in range(self.random.randrange(1, 4)):
                self._add_local_volume(number)

    def _add_class(self, name: str, *, is_default: bool) -> None:
        provisioner = {"cap": CAPACITY_DRIVER, "local": "kubernetes.io/no-provisioner"}.get(name, DISK_DRIVER)
        fields: Json = {"provisioner": provisioner}
        fields["volumeBindingMode"] = "Immediate" if name == "now" else "WaitForFirstConsumer"
        if name == "topo":
            zones = self.random.sample(ZONES, 2)
            fields["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": zones}]}]
        meta: Json = {"name": name}
        if is_default:
            meta["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
        self.add("storage.k8s.io/v1", "StorageClass", meta, **fields)

    def _add_csi_node(self, name: str, limit: int | None) -> None:
        drivers: list[Json] = [
            {"name": driver, "nodeID": name, "topologyKeys": [ZONE]} for driver in (DISK_DRIVER, CAPACITY_DRIVER)
        ]
        for driver in drivers if limit else ():
            driver["allocatable"] = {"count": limit}
        item = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name}}
        self.plan.nodes.insert(0, {**item, "spec": {"drivers": drivers}})

    def _add_capacities(self) -> None:
        for name in self.free:
            if self.chance(0.8):
                fields: Json = {"capacity": f"{self.random.choice((4, 12, 30))}Gi"}
                if self.chance(0.3):
                    fields["maximumVolumeSize"] = f"{self.random.choice((3, 12))}Gi"
                topology = {"matchLabels": {HOSTNAME: name}}
                meta = {"name": f"cap-{name}", "namespace": "ops"}
                version = "storage.k8s.io/v1"
                self.add(version, "CSIStorageCapacity", meta, storageClassName="cap", nodeTopology=topology, **fields)

    def _add_local_volume(self, number: int) -> None:
        on_node = {"key": HOSTNAME, "operator": "In", "values": [self.random.choice(self.node_names)]}
        spec = {
            "capacity": {"storage": f"{self.random.choice((1, 5, 20))}Gi"},
            "local": {"path": f"/disks/{number}"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "local",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}},
        }
        self.add("v1", "PersistentVolume", {"name": f"local-{number}"}, spec=spec)

    def add_devices(self) -> None:
        """Devices on most nodes, and templates of claims."""
        selector = {"cel": {"expression": f'device.driver == "{GPU_DRIVER}"'}}
        self.add("resource.k8s.io/v1", "DeviceClass", {"name": "gpu"}, spec={"selectors": [selector]})
        for name in self.free:
            if self.chance(0.75):
                self._add_slice(name)
        for namespace in NAMESPACES:
            for name in ("one", "some"):
                self._add_claim_template(namespace, f"gpu-{name}", is_single=name == "one")

    def add_shared_claim(self, namespace: str) -> str:
        """The name of a claim for one device that several pods may use."""
        spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
        self.add("resource.k8s.io/v1", "ResourceClaim", {"name": "shared", "namespace": namespace}, spec=spec)
        return "shared"

    def _add_slice(self, name: str) -> None:
        model = self.random.choice(("a100", "t4"))
        devices = [
            {
                "name": f"gpu-{number}",
                "attributes": {"model": {"string": model}},
                "capacity": {"memory": {"value": f"{self.random.choice((16, 40))}Gi"}},
            }
            for number in range(self.random.randrange(1, 4))
        ]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": GPU_DRIVER, "pool": pool, "nodeName": name, "devices": devices}
        item = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"gpus-{name}"}}
        self.plan.nodes.append({**item, "spec": spec})

    def _add_claim_template(self, namespace: str, name: str, *, is_single: bool) -> None:
        exactly: Json = {"deviceClassName": "gpu"}
        if self.chance(0.4):
            expression = self.random.choice(
                (
                    f'device.attributes["{GPU_DRIVER}"].model == "a100"',
                    f'device.capacity["{GPU_DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0',
                )
            )
            exactly["selectors"] = [{"cel": {"expression": expression}}]
        if is_single:
            request: Json = {"name": "r", "exactly": exactly}
        elif self.chance(0.5):
            large = {"name": "large", **exactly, "count": 2}
            request = {"name": "r", "firstAvailable": [large, {"name": "small", "deviceClassName": "gpu"}]}
        else:
            exactly |= {"allocationMode": "All"} if self.chance(0.3) else {"count": 2}
            request = {"name": "r", "exactly": exactly}
        spec = {"spec": {"devices": {"requests": [request]}}}
        self.add("resource.k8s.io/v1", "ResourceClaimTemplate", {"name": name, "namespace": namespace}, spec=spec)
        self.claim_templates.append((namespace, name))

    # ------------------------------------------------------------ running workloads

    def add_running(
        self,
        workload: Json,
        replicas: int,
        amounts: tuple[int, int],
        *,
        unready: float = 0.04,
        success_count: int = 0,
        age: int = 0,
    ) -> None:
        """A workload whose pods run where they fit.

        Args:
            unready: the probability that a pod is the one that is not ready.
            succeeded: so many of the first pods have ended well.
            age: the decimal logarithm of the minutes for which the youngest pod has been ready.
        """
        meta = workload["metadata"]
        in_order = workload["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady"
        in_order = in_order and workload["kind"] == "StatefulSet"
        # A controller that compares ages by their logarithm finds no two alike, nor two that are not ready.
        minutes = self.random.sample([10**exponent for exponent in range(age, age + replicas)], replicas)
        pods: list[PodPlan] = []
        for number in range(replicas):
            if number < success_count:
                pods.append(PodPlan(self.random.choice(self.node_names), minutes[number], has_succeeded=True))
                continue
            node = self.place(*amounts)
            is_ready = not self.chance(unready) or any(pod.ready_minutes is None for pod in pods)
            cost = self.random.randrange(-5, 20) if self.chance(unready) else None
            pods.append(PodPlan(node, minutes[number] if is_ready else None, cost))
            if in_order and not (node and is_ready):
                # Those after it wait for it.
                break
        self.plan.pods[f"{meta['namespace']}/{meta['name']}"] = pods
        self.plan.workloads.append(workload)
