"""Nodes and pods of drawn questions: small clusters of every shape that the plugins look at."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tests.parity.cross.drawing import Json

NAMESPACES = ("team-a", "team-b", "team-c", "default")
GPU, NIC, HUGE = "example.com/gpu", "vendor.io/nic", "hugepages-2Mi"
_AMOUNTS = {
    "cpu": ("0", "10m", "100m", "250m", "500m", "1", "1500m", "2", "3"),
    "memory": ("1", "64Mi", "256Mi", "512Mi", "1Gi", "1500M", "2Gi", "4Gi"),
    "ephemeral-storage": ("1Gi", "5Gi", "20Gi"),
    GPU: ("1", "2", "3"),
    NIC: ("1",),
    HUGE: ("4Mi", "64Mi"),
}
_CHANCES = {"cpu": 0.85, "memory": 0.75, "ephemeral-storage": 0.1, GPU: 0.15, NIC: 0.05, HUGE: 0.07}
_PRIORITIES = (0, 0, 0, 5, 10, 10, 100, 1000)


def nodes(random: Random, *, low: int = 1, high: int = 6) -> list[Json]:
    return [_node(random, f"node-{number}") for number in range(random.randint(low, high))]


def _node(random: Random, name: str) -> Json:
    labels = {"kubernetes.io/hostname": name}
    for key, prefix, probability in (
        ("topology.kubernetes.io/zone", "zone", 0.85),
        ("topology.kubernetes.io/region", "region", 0.75),
        ("rack", "rack", 0.5),
    ):
        if random.random() < probability:
            labels[key] = f"{prefix}-{random.randrange(3)}"
    capacity = {
        "cpu": random.choice(("0", "1", "2", "3900m", "4", "8", "16", "64")),
        "memory": random.choice(("2Gi", "4Gi", "7900Mi", "8Gi", "16Gi", "32Gi", "100G")),
        "pods": random.choice(("3", "10", "110", "110")),
        "ephemeral-storage": random.choice(("10Gi", "100Gi")),
    }
    for resource, amounts, probability in (
        (GPU, ("1", "2", "4", "8"), 0.4),
        (NIC, ("1", "4"), 0.2),
        (HUGE, ("64Mi", "1Gi"), 0.25),
    ):
        if random.random() < probability:
            capacity[resource] = random.choice(amounts)
    allocatable = dict(capacity)
    if random.random() < 0.4:
        allocatable["cpu"] = random.choice(("0", "500m", "1", "1900m", "3"))
        allocatable["memory"] = random.choice(("0", "1Gi", "1900Mi", "4G"))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"unschedulable": True} if random.random() < 0.04 else {},
        "status": {"capacity": capacity, "allocatable": allocatable},
    }


def container(random: Random, name: str) -> Json:
    """Return a container with requests alone, with equal or higher limits, with limits alone, or with neither."""
    form = random.random()
    if form < 0.1:
        return {"name": name, "image": "reg.io/app:v1"}
    requests = {
        resource: random.choice(amounts)
        for resource, amounts in _AMOUNTS.items()
        if random.random() < _CHANCES[resource]
    }
    resources: Json = {"requests": requests}
    devices = {resource: amount for resource, amount in requests.items() if resource in (GPU, NIC, HUGE)}
    if form < 0.45:
        resources["limits"] = dict(requests)
    elif form < 0.7:
        resources["limits"] = {**devices, **{name: random.choice(("2", "4")) for name in ("cpu",) if name in requests}}
        if "memory" in requests and random.random() < 0.7:
            resources["limits"]["memory"] = random.choice(("4Gi", "8Gi"))
    elif devices:
        resources["limits"] = devices
    return {"name": name, "image": "reg.io/app:v1", "resources": resources}


def pod(random: Random, name: str, namespace: str = "default", **spec: object) -> Json:
    """Return a pod that waits. Every other one has limits that equal its requests."""
    containers = [container(random, f"c{number}") for number in range(random.choice((1, 1, 1, 2, 3)))]
    if random.random() < 0.35:
        for item in containers:
            _guarantee(random, item)
    init = [container(random, f"i{number}") for number in range(random.choice((0, 0, 0, 1, 2)))]
    for item in init:
        if random.random() < 0.4:
            item["restartPolicy"] = "Always"
        if random.random() < 0.4:
            _guarantee(random, item)
    body: Json = {"containers": containers, **({"initContainers": init} if init else {}), **spec}
    if random.random() < 0.12:
        body["overhead"] = {"cpu": random.choice(("100m", "1")), "memory": "64Mi"}
    if random.random() < 0.06:
        body["resources"] = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    body.setdefault("priority", random.choice(_PRIORITIES))
    if random.random() < 0.08:
        body["preemptionPolicy"] = "Never"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{namespace}-{name}",
            "labels": {"app": random.choice(("web", "db", "batch"))},
            "creationTimestamp": f"2026-01-01T00:{random.randrange(60):02}:{random.randrange(60):02}Z",
        },
        "spec": body,
        "status": {"phase": "Pending"},
    }


def _guarantee(random: Random, item: Json) -> None:
    requests = item.setdefault("resources", {}).setdefault("requests", {})
    requests.setdefault("cpu", random.choice(("1", "2", "500m")))
    requests.setdefault("memory", random.choice(("512Mi", "1Gi")))
    item["resources"]["limits"] = dict(requests)


def running(
    random: Random,
    on: list[Json],
    *,
    high: int = 10,
    phases: tuple[str, ...] = ("Running", "Running", "Running", "Pending"),
) -> Iterator[Json]:
    """Yield pods that are bound, some of them on their way out, and pods that wait for a node they are nominated to."""
    for number in range(random.randint(0, high)):
        item = pod(random, f"run-{number}", random.choice(NAMESPACES))
        host = random.choice(on)["metadata"]["name"]
        status = item["status"]
        if random.random() < 0.12:
            status["nominatedNodeName"] = host
            item["spec"]["schedulerName"] = "default-scheduler"
        else:
            item["spec"]["nodeName"] = host
            status["phase"] = random.choice(phases)
            status["startTime"] = f"2026-01-01T01:{random.randrange(60):02}:{random.randrange(60):02}Z"
            if random.random() < 0.85:
                status["conditions"] = [
                    {
                        "type": "PodScheduled",
                        "status": random.choice(("True", "True", "True", "False")),
                        "lastTransitionTime": "2026-01-01T01:00:00Z",
                    }
                ]
        if random.random() < 0.12:
            item["metadata"]["deletionTimestamp"] = "2026-01-01T02:00:00Z"
        yield item


def budgets(random: Random) -> Iterator[Json]:
    """Yield budgets for pods of some namespaces."""
    for number in range(random.choice((0, 0, 1, 2))):
        yield {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"budget-{number}", "namespace": random.choice(NAMESPACES)},
            "spec": {"selector": {"matchLabels": {"app": random.choice(("web", "db", "batch"))}}},
            "status": {"disruptionsAllowed": random.randrange(3)},
        }
