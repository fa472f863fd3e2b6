"""What runs in a random cluster before a step, and the steps."""

from __future__ import annotations

from typing import Final

from tests.parity.workloads.naming import Json
from tests.parity.workloads.templates import amounts_of, draw_namespace, draw_template, workload
from tests.parity.workloads.world import World

SCALED: Final = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")
"""The kinds that have a number of replicas."""


def add_neighbours(world: World, count_max: int = 3) -> None:
    """Workloads of other kinds, and bare pods."""
    for _ in range(world.random.randrange(count_max + 1)):
        kind = world.random.choice((*SCALED, "DaemonSet", "Job", "Pod"))
        add_running(world, kind, world.random.randrange(1, 4))


def add_running(world: World, kind: str, replicas: int, *, unready: float = 0.04, namespace: str = "") -> Json:
    name, namespace = world.names.pop(), namespace or draw_namespace(world)
    template = draw_template(world, name, is_running=True)
    if kind == "Pod":
        pod = {"apiVersion": "v1", "kind": "Pod", **template}
        pod["metadata"] |= {"name": name, "namespace": namespace}
        world.add_running(pod, 1, amounts_of(template), unready=unready)
        return pod
    item = workload(kind, namespace, name, template, replicas)
    if kind == "DaemonSet":
        world.plan.daemons.append(item)
    else:
        if kind == "StatefulSet" and world.chance(0.4):
            item["spec"]["podManagementPolicy"] = "Parallel"
        world.add_running(item, replicas, amounts_of(template), unready=unready)
    return item


def add_budget(world: World, item: Json) -> None:
    """A PodDisruptionBudget for a workload or bare pod."""
    meta = item["metadata"]
    name = meta["name"]
    limit = world.random.choice(
        ({"minAvailable": 1}, {"minAvailable": "50%"}, {"maxUnavailable": 1}, {"maxUnavailable": 0})
    )
    labels = {"app": name}
    if world.chance(0.2):
        # One for several workloads; a pod may have more than one then, which no eviction passes.
        name, labels = f"{name}-tier", {"tier": "web"}
    spec: Json = {"selector": {"matchLabels": labels}, **limit}
    if world.chance(0.3):
        spec["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
    world.add("policy/v1", "PodDisruptionBudget", {"name": name, "namespace": meta["namespace"]}, spec=spec)


def apply(world: World, *items: Json) -> None:
    world.plan.step = {"apply": list(items)}


def scale(world: World, item: Json, replicas: int) -> None:
    meta = item["metadata"]
    world.plan.step = {
        "scale": {"namespace": meta["namespace"], "kind": item["kind"], "name": meta["name"], "replicas": replicas}
    }


def delete(world: World, item: Json) -> None:
    """The step deletes an object, with what it owns."""
    meta = item["metadata"]
    world.plan.step = {"delete": {"namespace": meta["namespace"], "kind": item["kind"], "name": meta["name"]}}


def drain(world: World) -> None:
    """The step drains one of the nodes."""
    world.plan.step = {"drain": world.random.choice(world.node_names)}
