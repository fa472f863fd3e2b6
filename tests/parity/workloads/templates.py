"""Random pods and workloads."""

from __future__ import annotations

from typing import Any

from tests.parity.workloads.naming import Json
from tests.parity.workloads.world import HOSTNAME, NAMESPACES, ZONE, ZONES, World

IMAGE = "registry.example.com/app:1"


def draw_namespace(world: World) -> str:
    return world.random.choice(list(NAMESPACES))


def draw_template(world: World, app: str, *, is_running: bool = False, cpu_max: int = 1500) -> Json:
    """A pod template with labels and random fields.

    Args:
        is_running: pods are made of it before the step. They request what the first container does.
    """
    random = world.random
    container = {"name": "main", "image": IMAGE, "resources": {"requests": draw_amounts(world, cpu_max)}}
    labels = {"app": app, "tier": random.choice(("web", "back"))}
    template: Json = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = template["spec"]
    for add, probability in _PLACING if is_running else (*_PLACING, *_AMOUNTS):
        if world.chance(probability):
            add(world, spec, app)
    if world.priorities and world.chance(0.6):
        spec["priorityClassName"] = random.choice(world.priorities)
    if world.runtimes and not is_running and world.chance(0.6):
        spec["runtimeClassName"] = random.choice(world.runtimes)
    return template


def draw_amounts(world: World, cpu_max: int = 1500) -> Json:
    return {"cpu": f"{world.random.randrange(53, cpu_max)}m", "memory": f"{world.random.randrange(61, 1500)}Mi"}


def amounts_of(template: Json) -> tuple[int, int]:
    """The thousandths of cpu and the MiB that the containers of a template request."""
    requests = template["spec"]["containers"][0]["resources"]["requests"]
    return int(requests["cpu"][:-1]), int(requests["memory"][:-2])


def workload(kind: str, namespace: str, name: str, template: Json, replicas: int | None, **spec: Any) -> Json:
    """A workload of that kind around the template."""
    version = {"Job": "batch/v1", "ReplicationController": "v1"}.get(kind, "apps/v1")
    item: Json = {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}}
    item["spec"] = {"template": template, **spec}
    labels = {"app": template["metadata"]["labels"]["app"]}
    if kind == "Job":
        template["spec"].setdefault("restartPolicy", "Never")
    else:
        item["spec"]["selector"] = labels if kind == "ReplicationController" else {"matchLabels": labels}
    if kind == "StatefulSet":
        item["spec"].setdefault("serviceName", name)
    if replicas is not None and kind != "DaemonSet":
        item["spec"]["parallelism" if kind == "Job" else "replicas"] = replicas
    return item


def mount(template: Json, volume: str) -> None:
    """Mount the volume in the first container."""
    mounts = template["spec"]["containers"][0].setdefault("volumeMounts", [])
    mounts.append({"name": volume, "mountPath": f"/{volume}"})


def claim_spec(world: World, size_gib: tuple[int, ...] = (1, 5, 20)) -> Json:
    """The spec of a claim; without a class it gets the default one."""
    spec: Json = {
        "accessModes": [world.random.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"))],
        "resources": {"requests": {"storage": f"{world.random.choice(size_gib)}Gi"}},
    }
    if world.chance(0.75):
        spec["storageClassName"] = world.random.choice(world.classes)
    elif world.chance(0.2):
        # None, which is not the default one.
        spec["storageClassName"] = ""
    return spec


def add_ephemeral_volume(world: World, template: Json) -> None:
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": claim_spec(world, (1, 5))}}}
    template["spec"].setdefault("volumes", []).append(volume)
    mount(template, "scratch")


def add_device_claim(world: World, template: Json, namespace: str) -> None:
    """A claim for each pod, or one that all of them share."""
    name = world.random.choice([name for where, name in world.claim_templates if where == namespace])
    claim = {"resourceClaimTemplateName": name}
    if world.chance(0.2):
        claim = {"resourceClaimName": world.add_shared_claim(namespace)}
    template["spec"]["resourceClaims"] = [{"name": "dev", **claim}]
    template["spec"]["containers"][0].setdefault("resources", {})["claims"] = [{"name": "dev"}]


# ---------------------------------------------------------------- fields of a spec


def _node_selector(world: World, spec: Json, app: str) -> None:
    key, values = world.random.choice((("disk", ("ssd", "hdd")), ("kubernetes.io/arch", ("amd64", "arm64"))))
    spec["nodeSelector"] = {key: world.random.choice(values)}


def _tolerations(world: World, spec: Json, app: str) -> None:
    tolerations: tuple[Json, ...] = (
        {"key": "dedicated", "value": "batch", "effect": "NoSchedule"},
        {"key": "dedicated", "operator": "Exists"},
        {"operator": "Exists"},
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists"},
    )
    spec["tolerations"] = [world.random.choice(tolerations)]


def _node_affinity(world: World, spec: Json, app: str) -> None:
    zone = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": world.random.sample(ZONES, 2)}]}
    disk = {"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["ssd"]}]}
    if world.chance(0.5):
        node_selector = {"nodeSelectorTerms": [zone, disk] if world.chance(0.3) else [zone]}
        affinity: Json = {"requiredDuringSchedulingIgnoredDuringExecution": node_selector}
    else:
        preferences = [{"weight": world.random.randrange(1, 100), "preference": disk}]
        affinity = {"preferredDuringSchedulingIgnoredDuringExecution": preferences}
    spec.setdefault("affinity", {})["nodeAffinity"] = affinity


def _pod_affinity(world: World, spec: Json, app: str) -> None:
    """Away from, or near to, pods of the same application, tier or revision."""
    labels = {"app": app} if world.chance(0.6) else {"tier": world.random.choice(("web", "back"))}
    term: Json = {
        "topologyKey": world.random.choice((HOSTNAME, HOSTNAME, ZONE)),
        "labelSelector": {"matchLabels": labels},
    }
    if world.chance(0.35):
        keys = world.random.choice((["pod-template-hash"], ["tier"], ["absent"]))
        term[world.random.choice(("matchLabelKeys", "mismatchLabelKeys"))] = keys
    if world.chance(0.2):
        term["namespaceSelector"] = {"matchLabels": {"team": "blue"}}
    name = "podAffinity" if world.chance(0.25) else "podAntiAffinity"
    if world.chance(0.65):
        affinity: Json = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    else:
        preferences = [{"weight": world.random.randrange(1, 100), "podAffinityTerm": term}]
        affinity = {"preferredDuringSchedulingIgnoredDuringExecution": preferences}
    spec.setdefault("affinity", {})[name] = affinity


def _spread(world: World, spec: Json, app: str) -> None:
    constraint: Json = {
        "maxSkew": world.random.choice((1, 1, 2)),
        "topologyKey": world.random.choice((HOSTNAME, ZONE)),
        "whenUnsatisfiable": world.random.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": {"matchLabels": {"app": app}},
    }
    if world.chance(0.3):
        constraint["matchLabelKeys"] = [world.random.choice(("pod-template-hash", "tier"))]
    if constraint["whenUnsatisfiable"] == "DoNotSchedule" and world.chance(0.2):
        constraint["minDomains"] = 3
    spec["topologySpreadConstraints"] = [constraint]


def _init_container(world: World, spec: Json, app: str) -> None:
    if "resources" in spec:
        # The amounts of the pod have to be enough for all of its containers.
        return
    container: Json = {"name": "setup", "image": IMAGE, "resources": {"requests": draw_amounts(world, 3000)}}
    if world.chance(0.4):
        container["restartPolicy"] = "Always"
    spec["initContainers"] = [container]


def _limits_only(world: World, spec: Json, app: str) -> None:
    """Requests that follow from limits, wholly or in part."""
    resources = spec["containers"][0]["resources"]
    requests = resources.pop("requests")
    resources["limits"] = requests
    if world.chance(0.5):
        resources["requests"] = {"memory": "59Mi"}


def _no_amounts(world: World, spec: Json, app: str) -> None:
    spec["containers"][0]["resources"] = {}


def _pod_level(world: World, spec: Json, app: str) -> None:
    """Amounts of the pod as a whole: requests, limits, or both, of one resource or of two."""
    cpu, memory = world.random.randrange(1600, 3200), world.random.randrange(1600, 3000)
    if world.chance(0.5):
        sidecar = {"name": "log", "image": IMAGE, "resources": {"requests": draw_amounts(world, 400)}}
        spec["containers"].append(sidecar)
    choice = world.random.randrange(4)
    limits: Json = {"cpu": f"{2 * cpu}m", "memory": f"{2 * memory}Mi"}
    requests: Json = {"cpu": f"{cpu + 400}m", "memory": f"{memory + 1500}Mi"}
    if choice == 0:
        spec["resources"] = {"limits": limits}
    elif choice == 1:
        spec["resources"] = {"requests": requests}
    elif choice == 2:
        spec["resources"] = {"limits": {"cpu": limits["cpu"]}}
    else:
        spec["resources"] = {"requests": {"cpu": requests["cpu"]}, "limits": limits}
        if world.chance(0.5):
            for container in spec["containers"]:
                container.pop("resources", None)


def _host_port(world: World, spec: Json, app: str) -> None:
    spec["containers"][0]["ports"] = [{"containerPort": 8080, "hostPort": 8080}]


def _host_network(world: World, spec: Json, app: str) -> None:
    spec["hostNetwork"] = True


def _gate(world: World, spec: Json, app: str) -> None:
    spec["schedulingGates"] = [{"name": "example.com/wait"}]


def _node_name(world: World, spec: Json, app: str) -> None:
    """Past the scheduler."""
    spec["nodeName"] = world.random.choice(world.node_names)


_PLACING = (
    (_node_selector, 0.12),
    (_tolerations, 0.2),
    (_node_affinity, 0.12),
    (_pod_affinity, 0.2),
    (_spread, 0.15),
)
_AMOUNTS = (
    (_limits_only, 0.1),
    (_no_amounts, 0.06),
    (_pod_level, 0.12),
    (_init_container, 0.1),
    (_host_port, 0.05),
    (_host_network, 0.03),
    (_gate, 0.03),
    (_node_name, 0.03),
)
