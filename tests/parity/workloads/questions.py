"""Random questions about what controllers and the API server derive, one category for each kind."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Final

from tests.parity.workloads.naming import Json
from tests.parity.workloads.plan import Plan
from tests.parity.workloads.rollouts import amid_rollout, rollout, stuck_rollout
from tests.parity.workloads.running import SCALED, add_budget, add_neighbours, add_running, apply, delete, drain, scale
from tests.parity.workloads.templates import (
    add_device_claim,
    add_ephemeral_volume,
    amounts_of,
    claim_spec,
    draw_amounts,
    draw_namespace,
    draw_template,
    mount,
    workload,
)
from tests.parity.workloads.world import HOSTNAME, ZONE, World

_MISSING_CLASS: Final = "nowhere"
_FIELD_OF_CLASS: Final = {"class": "priorityClassName", "runtime": "runtimeClassName"}


def draw_plan(seed: int, number: int) -> Plan:
    """The question of this number; the categories take turns."""
    random = Random(f"{seed}-{number}")
    category = list(CATEGORIES)[number % len(CATEGORIES)]
    plan = Plan(f"{seed}-{number:04}-{category}", category)
    world = World(random, plan, is_tight=random.random() < 0.5)
    if world.chance(0.5):
        world.add_priorities()
    CATEGORIES[category](world)
    return plan


def _draw_new(world: World, kind: str, namespace: str, template: Json, **spec: object) -> Json:
    name = template["metadata"]["labels"]["app"]
    return workload(kind, namespace, name, template, world.random.randrange(1, 5), **spec)


# ---------------------------------------------------------------- categories


def _statefulset_claims(world: World) -> None:
    """A StatefulSet with claim templates is new, or gets more replicas, of which some have claims already."""
    world.add_storage()
    add_neighbours(world, 2)
    name, namespace = world.names.pop(), draw_namespace(world)
    is_new = world.chance(0.65)
    template = draw_template(world, name, is_running=not is_new)
    mount(template, "data")
    claims = [{"metadata": {"name": "data"}, "spec": claim_spec(world)}]
    if world.chance(0.25):
        claims.append({"metadata": {"name": "logs"}, "spec": claim_spec(world, (1,))})
        mount(template, "logs")
    if world.chance(0.3):
        template["spec"]["volumes"] = [{"name": "data", "emptyDir": {}}]
    spec: Json = {"volumeClaimTemplates": claims}
    if world.chance(0.4):
        spec["podManagementPolicy"] = "Parallel"
    if world.chance(0.25):
        spec["ordinals"] = {"start": world.random.randrange(1, 4)}
    replicas = world.random.randrange(1, 4)
    item = workload("StatefulSet", namespace, name, template, replicas, **spec)
    start = item["spec"].get("ordinals", {}).get("start", 0)
    for ordinal in range(start, start + replicas + 2):
        if world.chance(0.25):
            _add_existing_claim(world, namespace, f"data-{name}-{ordinal}", claims[0]["spec"])
    if is_new:
        apply(world, item)
    else:
        # Its first pods are left to the scheduler, which binds their claims with them.
        world.plan.workloads.append(item)
        scale(world, item, replicas + world.random.randrange(1, 3))


def _add_existing_claim(world: World, namespace: str, name: str, spec: Json) -> None:
    meta: Json = {"name": name, "namespace": namespace}
    if spec.get("storageClassName") in world.plan.provisioned:
        meta["annotations"] = {"volume.kubernetes.io/selected-node": world.random.choice(world.node_names)}
    world.plan.daemons.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec})


def _claims(world: World) -> None:
    """Pods that name claims, which are there or come with them."""
    world.add_storage()
    add_neighbours(world, 2)
    namespace, claim_name = draw_namespace(world), "files"
    meta = {"name": claim_name, "namespace": namespace}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": claim_spec(world)}
    items = _draw_any(world, namespace)
    for item in items:
        template = item["spec"].get("template", item)
        volume = {"name": "files", "persistentVolumeClaim": {"claimName": claim_name}}
        template["spec"].setdefault("volumes", []).append(volume)
        mount(template, "files")
    fate = world.random.choice(("applied", "there", "there", "missing"))
    if fate == "there":
        _add_existing_claim(world, namespace, claim_name, claim["spec"])
    apply(world, *([claim] if fate == "applied" else []), *items)


def _ephemeral_volumes(world: World) -> None:
    """Generic ephemeral volumes of new pods, more pods, or pods that a drain replaces."""
    world.add_storage()
    add_neighbours(world, 2)
    name, namespace = world.names.pop(), draw_namespace(world)
    kind = world.random.choice(("Deployment", "ReplicaSet", "StatefulSet", "Job", "DaemonSet"))
    is_new = kind == "DaemonSet" or world.chance(0.6)
    template = draw_template(world, name, is_running=not is_new)
    add_ephemeral_volume(world, template)
    if is_new:
        if kind == "StatefulSet" and world.chance(0.4):
            # A claim of that name is there, and is not the pod's.
            _add_existing_claim(world, namespace, f"{name}-0-scratch", claim_spec(world, (1,)))
        apply(world, _draw_new(world, kind, namespace, template))
        return
    replicas = world.random.randrange(1, 4)
    item = workload(kind, namespace, name, template, replicas)
    claim = template["spec"]["volumes"][-1]["ephemeral"]["volumeClaimTemplate"]["spec"]
    if claim.get("storageClassName") in world.plan.provisioned:
        world.add_running(item, replicas, amounts_of(template))
    else:
        world.plan.workloads.append(item)
    if world.chance(0.5):
        scale(world, item, replicas + world.random.randrange(1, 3))
    else:
        drain(world)


def _device_claims(world: World) -> None:
    """Claims of templates for devices, of new pods, more pods, or pods that a drain replaces."""
    world.add_devices()
    add_neighbours(world, 2)
    name, namespace = world.names.pop(), draw_namespace(world)
    kind = world.random.choice(("Deployment", "ReplicaSet", "StatefulSet", "Job", "DaemonSet"))
    is_new = kind == "DaemonSet" or world.chance(0.65)
    template = draw_template(world, name, is_running=not is_new, cpu_max=900)
    add_device_claim(world, template, namespace)
    if is_new:
        apply(world, _draw_new(world, kind, namespace, template))
        return
    replicas = world.random.randrange(1, 3)
    item = workload(kind, namespace, name, template, replicas)
    world.plan.workloads.append(item)
    if world.chance(0.6):
        scale(world, item, replicas + world.random.randrange(1, 3))
    else:
        drain(world)


def _daemonset(world: World) -> None:
    add_neighbours(world, 3)
    name = world.names.pop()
    apply(world, workload("DaemonSet", draw_namespace(world), name, draw_template(world, name), None))


def _job(world: World) -> None:
    """A Job is new, is suspended, or gets another parallelism."""
    add_neighbours(world, 2)
    if world.chance(0.35):
        item = add_running(world, "Job", world.random.randrange(1, 4))
        if world.chance(0.5):
            _let_pods_succeed(world, item)
        if world.chance(0.5):
            scale(world, item, world.random.randrange(0, 6))
        else:
            apply(world, {**copy.deepcopy(item), "spec": {**item["spec"], "suspend": True}})
        return
    name = world.names.pop()
    spec: Json = {}
    if world.chance(0.6):
        spec["completions"] = world.random.randrange(1, 5)
        if world.chance(0.5):
            spec["completionMode"] = "Indexed"
    if world.chance(0.15):
        spec["suspend"] = True
    replicas = world.random.choice((None, 0, 1, 2, 3, 4))
    apply(world, workload("Job", draw_namespace(world), name, draw_template(world, name), replicas, **spec))


def _let_pods_succeed(world: World, item: Json) -> None:
    """Gives the Job completions, of which some are there."""
    spec = item["spec"]
    success_count, remaining_count = world.random.randrange(1, 3), world.random.randrange(0, 4)
    spec["completions"] = success_count + remaining_count
    if world.chance(0.5):
        spec["completionMode"] = "Indexed"
    world.plan.workloads.remove(item)
    # No more than its parallelism run at once, so that the others come as these end.
    success_count = min(success_count, spec["parallelism"])
    active = min(spec["parallelism"], spec["completions"] - success_count)
    amounts = amounts_of(spec["template"])
    world.add_running(item, success_count + active, amounts, unready=0, success_count=success_count)


def _admission(world: World) -> None:
    """Pods of every kind that the API server completes: classes, limits, amounts of pods, label keys."""
    world.add_priorities()
    if world.chance(0.5):
        world.add_runtime()
    add_neighbours(world, 3)
    namespace = draw_namespace(world)
    if world.chance(0.4):
        _add_limits(world, namespace, is_strict=False)
    # Not several at once: which of them comes first would be a race between controllers.
    apply(world, *_draw_any(world, namespace))


def _draw_any(world: World, namespace: str) -> list[Json]:
    name = world.names.pop()
    template = draw_template(world, name)
    kind = world.random.choice(("Deployment", "ReplicaSet", "StatefulSet", "Job", "Pod", "Pod*"))
    if not kind.startswith("Pod"):
        return [_draw_new(world, kind, namespace, template)]
    template = {"apiVersion": "v1", "kind": "Pod", **template}
    if kind == "Pod":
        template["metadata"] |= {"name": name, "namespace": namespace}
        return [template]
    template["metadata"] |= {"generateName": f"{name}-", "namespace": namespace}
    return [copy.deepcopy(template) for _ in range(world.random.randrange(1, 4))]


def _add_limits(world: World, namespace: str, *, is_strict: bool) -> None:
    """A LimitRange, which is there for new pods only."""
    random = world.random
    request = draw_amounts(world, 900)
    limits: list[Json] = [{"type": "Container", "defaultRequest": request}]
    if world.chance(0.5):
        default = {"cpu": f"{random.randrange(900, 2500)}m", "memory": f"{random.randrange(1500, 3000)}Mi"}
        limits[0]["default"] = default
        if world.chance(0.5):
            del limits[0]["defaultRequest"]
    if is_strict:
        limit_kind = random.choice(("min", "max", "maxLimitRequestRatio", "pod"))
        if limit_kind == "pod":
            limits.append({"type": "Pod", "max": {"cpu": f"{random.randrange(500, 1800)}m"}})
        elif limit_kind == "maxLimitRequestRatio":
            limits = [{"type": "Container", limit_kind: {"cpu": str(random.choice((1, 2)))}}]
        else:
            limits = [{"type": "Container", limit_kind: {"cpu": f"{random.randrange(300, 1400)}m"}}]
    meta = {"name": "limits", "namespace": namespace}
    world.plan.late.append({"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": {"limits": limits}})


def _refusals(world: World) -> None:
    """Pods that the API server refuses, all or some: quotas, limits, a class that does not exist."""
    namespace = draw_namespace(world)
    running = [add_running(world, "Deployment", world.random.randrange(1, 3), namespace=namespace)]
    add_neighbours(world, 1)
    cause = world.random.choice(("quota", "quota", "storage", "limits", "limits", "class", "runtime"))
    if cause == "storage":
        _apply_refused_claims(world, namespace)
        return
    if cause == "runtime":
        # Without any, a file that holds a cluster could have left them out.
        world.add_runtime()
    if cause == "quota":
        pod_count = sum(len(pods) for key, pods in world.plan.pods.items() if key.startswith(f"{namespace}/"))
        hard = world.random.choice(
            (
                {"pods": str(pod_count + world.random.randrange(1, 3))},
                {"requests.cpu": f"{world.random.randrange(1200, 5000)}m"},
                {"requests.memory": f"{world.random.randrange(1500, 6000)}Mi", "count/pods": str(pod_count + 3)},
                {"limits.cpu": "4"},
            )
        )
        quota: Json = {"hard": hard}
        if "pods" in hard and world.chance(0.4):
            quota["scopes"] = [world.random.choice(("BestEffort", "NotBestEffort"))]
        meta = {"name": "team", "namespace": namespace}
        world.plan.late.append({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": quota})
    elif cause == "limits":
        _add_limits(world, namespace, is_strict=True)
    if world.chance(0.4) and cause not in _FIELD_OF_CLASS:
        scale(world, running[0], 1 + world.random.randrange(2, 5))
        return
    items = _draw_any(world, namespace)
    if cause in _FIELD_OF_CLASS:
        for item in items:
            template = item["spec"].get("template", item)
            template["spec"][_FIELD_OF_CLASS[cause]] = _MISSING_CLASS
    apply(world, *items)


def _apply_refused_claims(world: World, namespace: str) -> None:
    """A workload whose claims a quota or limit refuses."""
    world.add_storage()
    name = world.names.pop()
    template = draw_template(world, name)
    spec: Json = {}
    if world.chance(0.5):
        add_ephemeral_volume(world, template)
        kind = world.random.choice(("Deployment", "Job"))
    else:
        kind, spec = (
            "StatefulSet",
            {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim_spec(world)}]},
        )
        mount(template, "data")
    meta = {"name": "storage", "namespace": namespace}
    if world.chance(0.4):
        limit = {"type": "PersistentVolumeClaim", "max": {"storage": "4Gi"}}
        late: Json = {"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": {"limits": [limit]}}
    else:
        hard = world.random.choice(({"persistentvolumeclaims": "1"}, {"requests.storage": "8Gi"}))
        late = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": hard}}
    world.plan.late.append(late)
    apply(world, _draw_new(world, kind, namespace, template, **spec))


def _with_class(world: World) -> None:
    """Add pods with the objects that they need: a PriorityClass, a template of claims, a budget."""
    world.add_devices()
    add_neighbours(world, 3)
    namespace, name = draw_namespace(world), world.names.pop()
    template = draw_template(world, name)
    value = world.random.choice((-100, 10, 100, 5000))
    meta = {"name": "new"}
    class_ = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta, "value": value}
    template["spec"]["priorityClassName"] = "new"
    items = [class_]
    if world.chance(0.4):
        spec = {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}}
        meta = {"name": "new", "namespace": namespace}
        version = "resource.k8s.io/v1"
        items.append({"apiVersion": version, "kind": "ResourceClaimTemplate", "metadata": meta, "spec": spec})
        template["spec"]["resourceClaims"] = [{"name": "dev", "resourceClaimTemplateName": "new"}]
    apply(world, *items, _draw_new(world, world.random.choice(SCALED), namespace, template))


def _scale_up(world: World) -> None:
    """A workload gets more pods: one that runs, or one that has none yet."""
    add_neighbours(world, 3)
    kind = world.random.choice((*SCALED, "Job"))
    if world.chance(0.3):
        name, namespace = world.names.pop(), draw_namespace(world)
        template = draw_template(world, name)
        item = workload(kind, namespace, name, template, 0)
        world.plan.workloads.append(item)
        scale(world, item, world.random.randrange(1, 5))
    else:
        replicas = world.random.randrange(1, 4)
        item = add_running(world, kind, replicas, unready=world.random.choice((0.0, 0.0, 0.2)))
        scale(world, item, replicas + world.random.randrange(1, 4))


def _scale_down(world: World) -> None:
    """A workload loses pods, of which some are pending, not ready, dear, or alone on their nodes."""
    add_neighbours(world, 2)
    kind = world.random.choice(("Deployment", "Deployment", *SCALED, "ReplicaSet", "Job"))
    replicas = world.random.randrange(2, 7)
    item = add_running(world, kind, replicas, unready=world.random.choice((0.0, 0.0, 0.25)))
    if kind == "Deployment" and world.chance(0.4):
        item["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    scale(world, item, world.random.randrange(0, replicas))


def _adoption(world: World) -> None:
    """A workload is new whose selector bare pods of before match, which it adopts."""
    add_neighbours(world, 1)
    name, namespace = world.names.pop(), draw_namespace(world)
    kind = world.random.choice(
        ("Deployment", "ReplicaSet", "ReplicaSet", "ReplicationController", "DaemonSet", "StatefulSet")
    )
    for number in range(world.random.randrange(1, 4)):
        template = draw_template(world, name, is_running=True)
        pod = {"apiVersion": "v1", "kind": "Pod", **template}
        pod["metadata"] |= {"name": f"bare-{number}", "namespace": namespace}
        world.add_running(pod, 1, amounts_of(template), age=number)
    apply(world, _draw_new(world, kind, namespace, draw_template(world, name)))


def _drain(world: World) -> None:
    """A node is drained: budgets, bare pods, DaemonSets."""
    for _ in range(world.random.randrange(1, 4)):
        kind = world.random.choice((*SCALED, "DaemonSet", "Job", "Pod", "Pod"))
        item = add_running(world, kind, world.random.randrange(1, 4))
        if world.chance(0.4):
            add_budget(world, item)
    drain(world)


def _delete_node(world: World) -> None:
    _drain(world)
    world.plan.step = {"deleteNode": world.plan.step["drain"]}


def _mixture(world: World) -> None:
    """Storage, devices and limits at once."""
    if world.chance(0.5):
        world.add_runtime()
    world.add_storage()
    world.add_devices()
    add_neighbours(world, 3)
    namespace = draw_namespace(world)
    if world.chance(0.3):
        _add_limits(world, namespace, is_strict=False)
    name = world.names.pop()
    template = draw_template(world, name)
    if world.chance(0.4):
        add_device_claim(world, template, namespace)
    if world.chance(0.5):
        add_ephemeral_volume(world, template)
    kind = world.random.choice((*SCALED, "Job", "DaemonSet"))
    spec: Json = {}
    if kind == "StatefulSet":
        spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim_spec(world, (1, 5))}]
        mount(template, "data")
    apply(world, _draw_new(world, kind, namespace, template, **spec))


def _near(world: World) -> None:
    """Pods keep near to others of their workload or away from them; some are replaced."""
    add_neighbours(world, 1)
    kind = world.random.choice((*SCALED, "Deployment", "ReplicaSet", "Job"))
    replicas = world.random.randrange(1, 4)
    item = add_running(world, kind, replicas, unready=0)
    spec = item["spec"]["template"]["spec"]
    labels = {"matchLabels": {"app": item["metadata"]["name"]}}
    term = {"topologyKey": world.random.choice((ZONE, ZONE, HOSTNAME)), "labelSelector": labels}
    name = world.random.choice(("podAffinity", "podAntiAffinity", "podAntiAffinity"))
    spec["affinity"] = {name: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    choice = world.random.choice(("drain", "drain", "drain", "template", "preempt"))
    if choice == "drain" or kind == "Job":
        drain(world)
    elif choice == "template":
        changed_item = copy.deepcopy(item)
        changed_item["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] = draw_amounts(world)
        apply(world, changed_item)
    else:
        world.add_priorities()
        pod = _draw_pod(world)
        pod["spec"]["priorityClassName"] = "high"
        apply(world, pod)


def _draw_pod(world: World) -> Json:
    name = world.names.pop()
    pod = {"apiVersion": "v1", "kind": "Pod", **draw_template(world, name)}
    pod["metadata"] |= {"name": name, "namespace": draw_namespace(world)}
    return pod


def _delete(world: World) -> None:
    """A workload or a bare pod is deleted, for whose place others wait."""
    items = [add_running(world, world.random.choice((*SCALED, "DaemonSet", "Job", "Pod")), 2) for _ in range(2)]
    add_neighbours(world, 1)
    # What is pending before: it may fit afterwards.
    name = world.names.pop()
    template = draw_template(world, name, cpu_max=4000)
    world.plan.daemons.append(workload("Deployment", draw_namespace(world), name, template, 2))
    delete(world, world.random.choice(items))


def _new_node(world: World) -> None:
    """Nodes come for pods that wait, and for DaemonSets."""
    add_neighbours(world, 2)
    name = world.names.pop()
    template = draw_template(world, name, cpu_max=3000)
    kind = world.random.choice(("Deployment", "StatefulSet", "ReplicaSet", "Job"))
    world.plan.daemons.append(workload(kind, draw_namespace(world), name, template, world.random.randrange(2, 7)))
    if world.chance(0.6):
        add_running(world, "DaemonSet", 0)
    apply(world, *(world.draw_node(f"new-{number}") for number in range(world.random.randrange(1, 3))))


def _resume(world: World) -> None:
    """A suspended Job is resumed."""
    add_neighbours(world, 3)
    name, spec = world.names.pop(), {"suspend": True}
    if world.chance(0.6):
        spec |= {"completions": world.random.randrange(1, 6)}
        if world.chance(0.5):
            spec |= {"completionMode": "Indexed"}
    template = draw_template(world, name)
    item = workload("Job", draw_namespace(world), name, template, world.random.randrange(1, 5), **spec)
    world.plan.daemons.append(item)
    apply(world, {**item, "spec": {**item["spec"], "suspend": False}})


CATEGORIES: dict[str, Callable[[World], None]] = {
    "statefulset-claims": _statefulset_claims,
    "claims": _claims,
    "ephemeral-volumes": _ephemeral_volumes,
    "device-claims": _device_claims,
    "daemonset": _daemonset,
    "job": _job,
    "admission": _admission,
    "refused": _refusals,
    "rollout": rollout,
    "stuck-rollout": stuck_rollout,
    "with-class": _with_class,
    "scale-up": _scale_up,
    "scale-down": _scale_down,
    "adoption": _adoption,
    "drain": _drain,
    "delete-node": _delete_node,
    "mixed": _mixture,
    "amid-rollout": amid_rollout,
    "near": _near,
    "delete": _delete,
    "new-node": _new_node,
    "resume": _resume,
}
