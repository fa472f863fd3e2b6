"""A cluster and a queue of pods, as random as a seed makes them, as an API client would post them.

Pods are such that the outcome of an attempt follows from the state alone: nobody outranks anybody who would have to
make room, so nothing is preempted and nothing nominated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

Json = dict[str, Any]

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
REGION, DISK, CORES = "topology.kubernetes.io/region", "example.com/disk", "example.com/cores"
GPU = "example.com/gpu"
NAMESPACES = {"default": {}, "team-a": {"team": "a", "stage": "live"}, "team-b": {"team": "b", "stage": "live"}}
APPS, TIERS, VERSIONS = ("web", "db", "cache", "batch", "mail"), ("front", "back"), ("1", "2")
ZONES, DISKS = ("east-1", "east-2", "west-1", "west-2"), ("ssd", "hdd", "nvme")
IMAGES = {"registry.example/web:1": 400, "registry.example/db:7": 900, "registry.example/batch:latest": 150}
PATIENT = "patient"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_MEBIBYTE = 1 << 20


def surroundings() -> list[tuple[str, Json]]:
    """What there is besides nodes, pods and the class of patient ones, each with the collection it is posted to."""
    objects_made: list[tuple[str, Json]] = [
        ("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        for name, labels in NAMESPACES.items()
        if name != "default"
    ]
    # Pods of a Service are spread by default, those without constraints of their own.
    return objects_made + [
        (
            f"/api/v1/namespaces/{namespace}/services",
            {"metadata": {"name": app}, "spec": {"selector": {"app": app}, "ports": [{"port": 80}]}},
        )
        for namespace, app in (("default", "web"), ("default", "db"), ("team-a", "web"))
    ]


class RandomCluster:
    """Nodes and pods out of one source of randomness; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def _maybe(self, share: float, make: Callable[[], Any], otherwise: Any = None) -> Any:
        return make() if self._random.random() < share else otherwise

    def _some(self, choices: Iterable[str], count_max: int = 2) -> list[str]:
        pool = list(choices)
        return self._random.sample(pool, self._random.randint(1, min(count_max, len(pool))))

    # ------------------------------------------------------------ nodes

    def nodes(self, count: int) -> list[Json]:
        return [self._node(f"node-{index:02}") for index in range(count)]

    def _node(self, name: str) -> Json:
        choose = self._random.choice
        zone, cores = choose(ZONES), choose((2, 4, 4, 8, 16))
        labels = {HOST: name, CORES: str(cores), DISK: choose(DISKS)}
        # Some nodes belong to no zone, and a few have no name for their host.
        if self._random.random() < 0.9:
            labels |= {ZONE: zone, REGION: zone.partition("-")[0]}
        if self._random.random() < 0.05:
            del labels[HOST]
        allocatable = {
            "cpu": str(cores),
            "memory": f"{cores * choose((2, 4))}Gi",
            "ephemeral-storage": "40Gi",
            "pods": str(choose((5, 12, 110))),
        }
        if self._random.random() < 0.2:
            allocatable[GPU] = str(choose((1, 2, 4)))
        return {
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": self._maybe(0.3, self._taints, []), "unschedulable": self._random.random() < 0.04},
            "status": {
                "capacity": allocatable,
                "allocatable": allocatable,
                "conditions": [{"type": "Ready", "status": "True"}],
                "images": [
                    {"names": [image], "sizeBytes": size * _MEBIBYTE}
                    for image, size in IMAGES.items()
                    if self._random.random() < 0.3
                ],
            },
        }

    def _taints(self) -> list[Json]:
        taints = (
            {"key": "dedicated", "value": "batch", "effect": "NoSchedule"},
            {"key": "flaky", "effect": "PreferNoSchedule"},
            {"key": "spot", "value": "yes", "effect": "PreferNoSchedule"},
            {"key": "draining", "effect": "NoExecute"},
        )
        return self._random.sample(taints, self._random.choice((1, 1, 2)))

    # ------------------------------------------------------------ pods

    def pods(self, count: int) -> list[Json]:
        """Pending pods without a `schedulerName`."""
        return [self._pod(f"pod-{index:03}") for index in range(count)]

    def _pod(self, name: str) -> Json:
        choose = self._random.choice
        app = choose(APPS)
        labels = {"app": app, "tier": choose(TIERS), "version": choose(VERSIONS)}
        spec: Json = {
            "containers": [self._container(index) for index in range(choose((1, 1, 1, 2)))],
            "initContainers": self._maybe(0.1, lambda: [{**self._container(0), "name": "init"}], []),
            "tolerations": self._maybe(0.4, self._tolerations, []),
            "nodeSelector": self._maybe(0.1, lambda: {DISK: choose(DISKS)}, {}),
            "affinity": {
                "nodeAffinity": self._maybe(0.35, self._node_affinity),
                "podAffinity": self._maybe(0.25, lambda: self._pod_affinity(labels, probability=0.3)),
                "podAntiAffinity": self._maybe(0.25, lambda: self._pod_affinity(labels, probability=0.4)),
            },
            "topologySpreadConstraints": self._maybe(0.3, lambda: self._constraints(labels), []),
            "priorityClassName": self._maybe(0.2, lambda: PATIENT, ""),
        }
        spec["containers"][0]["ports"] = self._maybe(0.15, self._host_ports, [])
        namespace = choose(("default", *NAMESPACES))
        return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": spec}

    def _container(self, index: int) -> Json:
        choose = self._random.choice
        requests = {"cpu": choose(("0", "50m", "100m", "500m", "1", "2")), "memory": choose(("64Mi", "512Mi", "2Gi"))}
        limits: Json = {}
        if self._random.random() < 0.1:
            requests["ephemeral-storage"] = choose(("1Gi", "15Gi"))
        if self._random.random() < 0.06:
            requests[GPU] = limits[GPU] = choose(("1", "2", "8"))
        if self._random.random() < 0.03:
            requests["memory"] = "900Gi"
        # Scores count something for containers that ask for nothing.
        resources = self._maybe(0.85, lambda: {"requests": requests, "limits": limits}, {})
        return {"name": f"c{index}", "image": choose((*IMAGES, "registry.example/small")), "resources": resources}

    def _host_ports(self) -> list[Json]:
        choose = self._random.choice
        port = choose((8080, 9090))
        port_and_protocol = {"containerPort": port, "hostPort": port, "protocol": choose(("TCP", "TCP", "UDP"))}
        return [{**port_and_protocol, "hostIP": choose(("", "0.0.0.0", "127.0.0.1"))}]

    def _tolerations(self) -> list[Json]:
        tolerations = (
            {"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"},
            {"key": "dedicated", "operator": "Equal", "value": "web", "effect": "NoSchedule"},
            {"key": "flaky", "operator": "Exists"},
            {"operator": "Exists", "effect": "NoExecute"},
            {"key": "spot", "operator": "Exists", "effect": "PreferNoSchedule"},
        )
        return self._random.sample(tolerations, self._random.randint(1, 3))

    def _node_affinity(self) -> Json:
        weight = self._random.randint
        affinity: Json = {}
        if self._random.random() < 0.5:
            terms = [self._node_term() for _ in range(self._random.choice((1, 1, 2)))]
            affinity[REQUIRED] = {"nodeSelectorTerms": terms}
        if self._random.random() < 0.7:
            affinity[PREFERRED] = [
                {"weight": weight(1, 100), "preference": self._node_term()} for _ in range(weight(1, 3))
            ]
        return affinity

    def _node_term(self) -> Json:
        choose = self._random.choice
        kinds: list[Callable[[], Json]] = [
            lambda: {"key": ZONE, "operator": choose(("In", "NotIn")), "values": self._some(ZONES, 3)},
            lambda: {"key": DISK, "operator": choose(("In", "NotIn")), "values": self._some((*DISKS, "tape"))},
            lambda: {"key": CORES, "operator": choose(("Gt", "Lt")), "values": [choose(("3", "6"))]},
            lambda: {"key": REGION, "operator": choose(("Exists", "Exists", "DoesNotExist"))},
        ]
        return {"matchExpressions": [make() for make in self._random.sample(kinds, choose((1, 1, 2)))]}

    def _pod_affinity(self, labels: Json, probability: float) -> Json:
        if self._random.random() < probability:
            return {REQUIRED: [self._pod_term(labels) for _ in range(self._random.choice((1, 1, 1, 2)))]}
        preferences = [
            {"weight": self._random.randint(1, 100), "podAffinityTerm": self._pod_term(labels)}
            for _ in range(self._random.randint(1, 2))
        ]
        return {PREFERRED: preferences}

    def _pod_term(self, labels: Json) -> Json:
        term: Json = {"topologyKey": self._random.choice((ZONE, HOST, HOST, REGION)), **self._selector(labels)}
        if self._random.random() < 0.2:
            term["namespaces"] = self._some(NAMESPACES)
        if self._random.random() < 0.2:
            term["namespaceSelector"] = self._random.choice(({}, {"matchLabels": {"stage": "live"}}))
        return term

    def _constraints(self, labels: Json) -> list[Json]:
        choose = self._random.choice
        constraints = []
        for key in self._random.sample((ZONE, HOST, REGION), choose((1, 1, 2))):
            action = choose(("DoNotSchedule", "ScheduleAnyway"))
            constraint = {"maxSkew": choose((1, 1, 2, 4)), "topologyKey": key, "whenUnsatisfiable": action}
            constraint |= self._selector(labels)
            for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
                constraint[field] = choose((None, "Honor", "Ignore"))
            if action == "DoNotSchedule":
                constraint["minDomains"] = choose((None, None, 1, 3, 5))
            constraints.append(constraint)
        return constraints

    def _selector(self, labels: Json) -> Json:
        """A selector, mostly of pods like the one with these labels."""
        app = labels["app"] if self._random.random() < 0.7 else self._random.choice(APPS)
        kinds: tuple[Json, ...] = (
            {"labelSelector": {"matchLabels": {"app": app}}},
            {"labelSelector": {"matchLabels": {"app": app}}, "matchLabelKeys": ["version"]},
            {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": [app, "mail"]}]}},
            {"labelSelector": {"matchLabels": {"app": app, "tier": labels["tier"]}}},
        )
        return self._random.choice(kinds)
