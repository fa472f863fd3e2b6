"""Sample objects for a cluster: varied nodes, pods that always fit on them, and pods that cannot fit.

Invariant of `varied_pods`, for at least 5 nodes and at most 10 pods per node: whatever a scheduler decides for some of
the pods, the next one fits on some node. It holds because every set of nodes that a pod is restricted to has room for
*all* pods that may enter it, even if each node leaves nearly the size of the largest pod unused. The tests check it.
"""

from __future__ import annotations

import random
from typing import Any

from podium.sandbox.discovery import KUBELET_VERSION

Json = dict[str, Any]

ZONES = ("zone-a", "zone-b", "zone-c")
GPU = "example.com/gpu"
_REGION = "local-1"
_EPOCH = "2026-01-01T00:00:00Z"
_MEBI = 1024 * 1024

# Nodes repeat this block of five: instance type, CPUs, memory in GiB, fast disk, GPUs.
_INSTANCES = (
    ("small", 4, 16, False, 0),
    ("medium", 8, 32, True, 0),
    ("medium", 8, 32, False, 0),
    ("large", 16, 64, True, 0),
    ("gpu", 8, 64, False, 8),
)
_IMAGES = {
    "registry.example/web:1.4": 180,
    "registry.example/api:2.0": 420,
    "registry.example/batch:7": 950,
    "registry.example/cache:6.2": 60,
}
# Pods repeat these sizes: CPU in millicores, memory in MiB; 250m and 400Mi on average.
_SIZES = (
    *((100, 128), (250, 512), (500, 768), (150, 256), (500, 768)),
    *((200, 256), (300, 512), (100, 64), (200, 256), (200, 480)),
)
_BATCH_CPU_MILLI = 1800
_CLASSES = {"podium-high": 1000, "podium-low": 10}


def priority_classes() -> list[Json]:
    """Return the priority classes that `varied_pods` use. Create them before the pods."""
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "globalDefault": False,
            "description": "for the sandbox's sample pods",
        }
        for name, value in _CLASSES.items()
    ]


def varied_nodes(count: int, seed: int = 0) -> list[Json]:
    """Return nodes in three zones and four sizes, some with fast disks, taints or GPUs.

    One node in five has GPUs and the taint dedicated=gpu:NoSchedule; one in seven is tainted PreferNoSchedule.
    The seed decides which images a node has.
    """
    chance = random.Random(f"nodes-{seed}")
    return [_node(index, chance) for index in range(count)]


def _node(index: int, chance: random.Random) -> Json:
    instance, cpus, memory_gib, fast, gpus = _INSTANCES[index % len(_INSTANCES)]
    name = f"node-{index:05d}"
    taints: list[Json] = []
    if gpus:
        taints.append({"key": "dedicated", "value": "gpu", "effect": "NoSchedule"})
    if index % 7 == 6:
        taints.append({"key": "example.com/spot", "value": "true", "effect": "PreferNoSchedule"})
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/region": _REGION,
        "topology.kubernetes.io/zone": ZONES[index % len(ZONES)],
        "node.kubernetes.io/instance-type": instance,
        "disk": "ssd" if fast else "hdd",
    }
    if gpus:
        labels["dedicated"] = "gpu"
    capacity = {"cpu": str(cpus), "memory": f"{memory_gib}Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    allocatable = capacity | {"cpu": f"{cpus * 1000 - 100}m", "memory": f"{memory_gib * 1024 - 512}Mi"}
    if gpus:
        capacity[GPU] = allocatable[GPU] = str(gpus)
    images = chance.sample(sorted(_IMAGES), k=chance.randrange(1, len(_IMAGES)))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints} if taints else {},
        "status": {
            "capacity": capacity,
            "allocatable": allocatable,
            "conditions": [_condition("MemoryPressure", "False"), _condition("Ready", "True")],
            "addresses": [
                {"type": "InternalIP", "address": f"10.0.{index // 250 % 250}.{index % 250 + 1}"},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": {
                "machineID": name,
                "systemUUID": name,
                "bootID": name,
                "kubeletVersion": KUBELET_VERSION,
                "kubeProxyVersion": "",
                "osImage": "Sandbox Linux",
                "kernelVersion": "6.12",
                "containerRuntimeVersion": "none://1",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
            "images": [{"names": [image], "sizeBytes": _IMAGES[image] * _MEBI} for image in images],
        },
    }


def _condition(kind: str, status: str) -> Json:
    times = {"lastHeartbeatTime": _EPOCH, "lastTransitionTime": _EPOCH}
    return {"type": kind, "status": status, "reason": "Sandbox", "message": "", **times}


def varied_pods(count: int, seed: int = 0, scheduler_name: str = "podium") -> list[Json]:
    """Return pods that all fit on `varied_nodes(n)` for every n >= max(5, count / 10), in any order and place.

    In every 25 pods: 5 ask for a fast disk (2 by selector, 3 by affinity), 2 for some zones, 1 for a GPU, 2 for a
    host port; 4 prefer a zone; some have a priority. The seed shuffles the kinds and sizes.
    """
    chance = random.Random(f"pods-{seed}")
    pods = [_pod(index, scheduler_name) for index in range(count)]
    # Shuffled, since pods of one kind in a row would hide how kinds affect each other.
    chance.shuffle(pods)
    for index, pod in enumerate(pods):
        pod["metadata"]["name"] = f"{pod['metadata']['labels']['app']}-{index:05d}"
    return pods


def unplaceable_pods(scheduler_name: str = "podium") -> list[Json]:
    """Return three pods that fit on none of `varied_nodes`: too big, an unmatched selector, an untolerated taint."""
    too_big = sample_pod("too-big", cpu_milli=64_000, scheduler_name=scheduler_name)
    no_such_node = sample_pod("no-such-node", scheduler_name=scheduler_name)
    no_such_node["spec"]["nodeSelector"] = {"disk": "tape"}
    not_tolerating = sample_pod("not-tolerating", scheduler_name=scheduler_name)
    not_tolerating["spec"]["nodeSelector"] = {"dedicated": "gpu"}
    return [too_big, no_such_node, not_tolerating]


def filling_deployment(nodes: int, scheduler_name: str = "podium") -> Json:
    """Return a Deployment of low priority that takes two thirds of those of `varied_nodes` without a taint."""
    cores = sum(cpus for _, cpus, _, _, gpus in _INSTANCES if not gpus) * nodes / len(_INSTANCES)
    labels = {"app": "batch"}
    pod = sample_pod("", app="batch", cpu_milli=_BATCH_CPU_MILLI, memory_mib=2048, scheduler_name=scheduler_name)
    spec = pod["spec"] | {"priorityClassName": "podium-low"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "batch", "namespace": "default"},
        "spec": {
            "replicas": round(cores * 1000 * 2 / 3 / _BATCH_CPU_MILLI),
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def urgent_pod(number: int, scheduler_name: str = "podium") -> Json:
    """Return a pod of high priority that has room only where it preempts pods of the filling Deployment."""
    pod = sample_pod(f"urgent-{number:03d}", app="urgent", cpu_milli=6000, scheduler_name=scheduler_name)
    pod["spec"]["priorityClassName"] = "podium-high"
    return pod


def gangs_and_pods(count: int, scheduler_name: str = "podium") -> tuple[list[Json], list[Json]]:
    """PodGroups that need all of their three pods, and these pods, which fit wherever `varied_pods` do."""
    names = [f"gang-{index:05d}" for index in range(count)]
    members = [(name, f"{name}-{letter}") for name in names for letter in "abc"]
    pods = [sample_pod(pod_name, scheduler_name=scheduler_name) for _, pod_name in members]
    for (name, _), pod in zip(members, pods, strict=True):
        pod["spec"]["schedulingGroup"] = {"podGroupName": name}
    return [_gang(name, 3) for name in names], pods


def unplaceable_gang(scheduler_name: str = "podium") -> tuple[Json, list[Json]]:
    """A gang of three pods, of which one fits nowhere, so that none of them starts."""
    pods = [sample_pod(f"no-gang-{letter}", scheduler_name=scheduler_name) for letter in "ab"]
    pods.append(sample_pod("no-gang-too-big", cpu_milli=64_000, scheduler_name=scheduler_name))
    for pod in pods:
        pod["spec"]["schedulingGroup"] = {"podGroupName": "no-gang"}
    return _gang("no-gang", 3), pods


def _gang(name: str, min_count: int) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}},
    }


def sample_pod(
    name: str,
    *,
    app: str = "sample",
    cpu_milli: int = 100,
    memory_mib: int = 128,
    image: str = "registry.example/web:1.4",
    scheduler_name: str = "podium",
) -> Json:
    """Return a pod with one container in the namespace "default"."""
    requests = {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": app}},
        "spec": {
            "schedulerName": scheduler_name,
            "containers": [{"name": "main", "image": image, "resources": {"requests": requests}}],
        },
    }


def _pod(index: int, scheduler_name: str) -> Json:
    cpu_milli, memory_mib = _SIZES[index % len(_SIZES)]
    image = sorted(_IMAGES)[index % len(_IMAGES)]
    app = image.rpartition("/")[2].partition(":")[0]
    pod = sample_pod(
        "", app=app, cpu_milli=cpu_milli, memory_mib=memory_mib, image=image, scheduler_name=scheduler_name
    )
    spec = pod["spec"]
    kind = index % 25
    if kind in (3, 11):
        spec["nodeSelector"] = {"disk": "ssd"}
    elif kind in (5, 13, 17):
        spec["affinity"] = _required_term("disk", "In", "ssd")
    elif kind in (7, 19):
        spec["affinity"] = _required_term("topology.kubernetes.io/zone", "NotIn", ZONES[index % 3])
    elif kind in (1, 9, 15, 21):
        spec["affinity"] = _preferred_term("topology.kubernetes.io/zone", ZONES[index % 3])
    elif kind in (4, 14):
        # One port for each 25 pods, so that the ports never use up the nodes.
        spec["containers"][0]["ports"] = [{"containerPort": 8080, "hostPort": 20_000 + index // 25, "protocol": "TCP"}]
    elif kind == 12:
        spec["nodeSelector"] = {"dedicated": "gpu"}
        spec["tolerations"] = [{"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}]
        spec["containers"][0]["resources"] |= {"limits": {GPU: "1"}}
        spec["containers"][0]["resources"]["requests"][GPU] = "1"
    if index % 6 == 2:
        spec["priorityClassName"] = "podium-high"
    elif index % 6 == 5:
        spec["priorityClassName"] = "podium-low"
    return pod


def _required_term(key: str, operator: str, value: str) -> Json:
    terms = [{"matchExpressions": [{"key": key, "operator": operator, "values": [value]}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def _preferred_term(key: str, value: str) -> Json:
    preference = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    terms = [{"weight": 50, "preference": preference}]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
