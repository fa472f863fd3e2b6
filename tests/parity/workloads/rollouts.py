"""Random questions about templates that are changed."""

from __future__ import annotations

import copy

from tests.parity.workloads.naming import Json
from tests.parity.workloads.running import SCALED, add_neighbours, add_running, apply, drain, scale
from tests.parity.workloads.templates import IMAGE, draw_amounts
from tests.parity.workloads.world import World


def rollout(world: World) -> None:
    """The template of a workload that runs is changed."""
    add_neighbours(world, 2)
    kind = world.random.choice(("Deployment", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"))
    item = add_running(world, kind, world.random.randrange(1, 5), unready=world.random.choice((0, 0, 0.15)))
    spec = item["spec"]
    strategies: tuple[Json, ...] = (
        {},
        {"type": "Recreate"},
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": "50%"}},
    )
    if kind == "Deployment" and (strategy := world.random.choice(strategies)):
        spec["strategy"] = strategy
    if kind == "StatefulSet" and world.chance(0.3):
        spec["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    if kind == "DaemonSet" and world.chance(0.3):
        spec["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    if kind in ("StatefulSet", "DaemonSet") and world.chance(0.2):
        spec["updateStrategy"] = {"type": "OnDelete"}
    if kind == "Deployment" and world.chance(0.1):
        spec["paused"] = True
    changed_item = copy.deepcopy(item)
    pod = changed_item["spec"]["template"]["spec"]
    pod["containers"][0]["resources"]["requests"] = draw_amounts(world, 2500)
    if world.chance(0.3):
        changed_item["spec"]["template"]["metadata"]["labels"]["tier"] = "new"
    if world.chance(0.2):
        pod["containers"][0]["image"] = f"{IMAGE}.1"
    if kind in SCALED and world.chance(0.3):
        changed_item["spec"]["replicas"] += 1
    apply(world, changed_item)


def stuck_rollout(world: World) -> None:
    """A rollout stops at pods that fit nowhere. Then it is scaled, mended, or its node is drained."""
    add_neighbours(world, 1)
    kind = world.random.choice(("Deployment", "Deployment", "StatefulSet", "DaemonSet"))
    item = add_running(world, kind, world.random.randrange(2, 6), unready=0)
    if kind == "Deployment" and world.chance(0.4):
        item["spec"]["strategy"] = {
            "rollingUpdate": {"maxSurge": world.random.choice((1, 2, "50%")), "maxUnavailable": 1}
        }
    stuck = copy.deepcopy(item)
    pod = stuck["spec"]["template"]["spec"]
    pod["nodeSelector"] = {**pod.get("nodeSelector", {}), "disk": "none"}
    world.plan.late.append(stuck)
    choice = world.random.choice(("scale", "scale", "mend", "drain") if kind != "DaemonSet" else ("mend", "drain"))
    if choice == "scale":
        scale(world, item, world.random.randrange(1, 9))
    elif choice == "mend":
        # Another template; the selector of before stays, since whoever applies it never had the other one.
        mended = copy.deepcopy(stuck)
        mended["spec"]["template"]["spec"]["nodeSelector"]["disk"] = "ssd"
        apply(world, mended)
    else:
        drain(world)


def amid_rollout(world: World) -> None:
    """Some pods are of an older template, which a partition keeps; then the partition, the size or a pod changes."""
    add_neighbours(world, 1)
    replicas = world.random.randrange(2, 6)
    item = add_running(world, "StatefulSet", replicas, unready=0)
    partition = world.random.randrange(1, replicas + 1)
    item["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    changed_item = copy.deepcopy(item)
    changed_item["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] = draw_amounts(world, 1200)
    world.plan.late.append(changed_item)
    choice = world.random.choice(("partition", "scale", "scale", "drain", "again"))
    if choice == "scale":
        scale(world, item, world.random.randrange(0, replicas + 3))
    elif choice == "drain":
        drain(world)
    else:
        second_change = copy.deepcopy(changed_item)
        second_change["spec"]["updateStrategy"]["rollingUpdate"]["partition"] = world.random.randrange(partition)
        if choice == "again":
            second_change["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] = draw_amounts(
                world, 1200
            )
        apply(world, second_change)
