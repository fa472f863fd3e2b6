"""Small random clusters in which a pod waits for devices, or for a zone without the pods that it is kept apart from, or
for topology spread.

Pods come in ReplicaSets; some have a claim of their own for one or two devices of their node. The pod in question asks
for up to three devices, or for a zone of its own, or for both. A cluster counts if it has no node for that pod.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final

from podium.insight import Cluster
from tests.device_manifests import device_class, devices, exactly, held_claim, resource_slice
from tests.make_room.clusters import FullCluster, devices_of, key_of, pod_of
from tests.manifests import HOSTNAME, ZONE, Json, node
from tests.workload_manifests import budget, claims_from, device_claim_template, priority_class, ready, workload

_ZONES: Final = ("a", "b", "c")
_CPUS: Final = (500, 1000, 1500, 2000)
_DEVICES_MAX: Final = 3


def ruled_cluster(seed: int) -> FullCluster | None:
    """Build the cluster of a seed; None if the pod in question fits as it is."""
    random = Random(f"ruled/{seed}")
    names = [f"n{number}" for number in range(random.randint(3, 6))]
    cpu = {name: random.choice((2000, 3000, 4000)) for name in names}
    gpus = {name: list(range(random.choice((0, 1, 2, 3)))) for name in names}
    zones = {name: random.choice(_ZONES[: random.randint(2, 3)]) for name in names}
    objects = _nodes(names, cpu, gpus, zones)
    groups: list[str] = []
    for number in range(random.randint(3, 6)):
        groups.append(f"rs-{number}")
        objects += _replica_set(random, f"rs-{number}", cpu, gpus)
    apart = frozenset(random.sample(groups, random.randint(1, 2))) if random.random() < 0.6 else frozenset[str]()
    count = random.choice((0, 1, 2, 3)) if apart else random.randint(1, _DEVICES_MAX)
    subject_set = _workload("subject", random.choice(_CPUS), count, apart)
    subject = pod_of(subject_set, 0, 1)
    objects += [subject_set, subject]
    world = Cluster.load(objects)
    return None if world.evaluate(subject).node is not None else FullCluster(objects, key_of(subject), apart)


def spread_cluster(seed: int) -> FullCluster | None:
    """Build the cluster of a seed in which pods are spread; None if the pod in question fits as it is."""
    random = Random(f"spread/{seed}")
    names = [f"n{number}" for number in range(random.randint(3, 6))]
    cpu = {name: random.choice((2000, 3000, 4000)) for name in names}
    zones = {name: random.choice(_ZONES[: random.randint(2, 3)]) for name in names}
    objects = _nodes(names, cpu, {name: [] for name in names}, zones)
    if random.random() < 0.2:
        del random.choice(objects[: len(names)])["metadata"]["labels"][ZONE]
    groups = [f"rs-{number}" for number in range(random.randint(2, 4))]
    for name in groups:
        rules = _spread_rules(random, [name]) if random.random() < 0.4 else []
        objects += _replica_set(random, name, cpu, {name: [] for name in names}, (0,), rules)
    groups_to_count = [*random.sample(groups, random.randint(1, 2)), *random.choice((["subject"], []))]
    subject_set = _workload("subject", random.choice(_CPUS), 0, rules=_spread_rules(random, groups_to_count))
    subject = pod_of(subject_set, 0, 1)
    objects += [subject_set, subject]
    is_fitting = Cluster.load(objects).evaluate(subject).node is not None
    return None if is_fitting else FullCluster(objects, key_of(subject))


def _spread_rules(random: Random, groups: list[str]) -> list[Json]:
    """One or two constraints, on zones and on hosts."""
    keys = random.choice(((ZONE,), (ZONE,), (HOSTNAME,), (ZONE, HOSTNAME)))
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": sorted(groups)}]}
    rules: list[Json] = []
    for key in keys:
        rule = {"topologyKey": key, "maxSkew": random.choice((1, 1, 2)), "whenUnsatisfiable": "DoNotSchedule"}
        least = {"minDomains": random.randint(2, 4)} if random.random() < 0.2 else {}
        rules.append({**rule, **least, "labelSelector": selector})
    return rules


def _nodes(names: list[str], cpu: dict[str, int], gpus: dict[str, list[int]], zones: dict[str, str]) -> list[Json]:
    templates = [device_claim_template(f"gpu-{count}", exactly(count=count)) for count in range(1, _DEVICES_MAX + 1)]
    nodes = [node(name, f"{cpu[name]}m", memory="64000M", labels={ZONE: zones[name], HOSTNAME: name}) for name in names]
    slices = [resource_slice(f"{name}-gpus", devices(len(gpus[name])), node=name) for name in names if gpus[name]]
    classes = [priority_class("p1", 1, preemptionPolicy="Never"), device_class()]
    return [*nodes, *slices, *classes, *templates]


def _replica_set(
    random: Random,
    name: str,
    cpu: dict[str, int],
    gpus: dict[str, list[int]],
    counts: Sequence[int] = (0, 0, 1, 1, 2),
    rules: Sequence[Json] = (),
) -> list[Json]:
    """A ReplicaSet with pods on random nodes that have room; it has as many as find any."""
    amount, count = random.choice(_CPUS), random.choice(counts)
    replica_set = _workload(name, amount, count, rules=rules)
    objects: list[Json] = []
    number = 0
    for _ in range(random.randint(1, 3)):
        fitting = [at for at in cpu if cpu[at] >= amount and len(gpus[at]) >= count]
        if not fitting:
            break
        at = random.choice(fitting)
        cpu[at] -= amount
        numbers, gpus[at] = gpus[at][:count], gpus[at][count:]
        objects += _running(pod_of(replica_set, number, 1), at, numbers)
        number += 1
    if not number:
        return []
    replica_set["spec"]["replicas"] = number
    if random.random() < 0.2:
        objects.append(budget({"app": name}, name, maxUnavailable=random.choice((0, 1))))
    return [replica_set, *objects]


def _workload(name: str, cpu: int, count: int, apart: frozenset[str] = frozenset(), rules: Sequence[Json] = ()) -> Json:
    spec: dict[str, Any] = {"priorityClassName": "p1"}
    if rules:
        spec["topologySpreadConstraints"] = list(rules)
    if count:
        spec["resourceClaims"] = claims_from(f"gpu-{count}")
    if apart:
        matching = {"matchExpressions": [{"key": "app", "operator": "In", "values": sorted(apart)}]}
        terms = [{"topologyKey": ZONE, "labelSelector": matching}]
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    replica_set = workload("ReplicaSet", name, 1, pod_spec=spec)
    replica_set["metadata"]["uid"] = name
    (container,) = replica_set["spec"]["template"]["spec"]["containers"]
    container["resources"] = {"requests": {"cpu": f"{cpu}m", "memory": "10M"}}
    return replica_set


def _running(pod: Json, at: str, numbers: list[int]) -> list[Json]:
    """The pod on its node, and its own claim with these devices."""
    name = pod["metadata"]["name"]
    count = devices_of(pod)
    bound_pod = {**pod, "spec": {**pod["spec"], "nodeName": at}, "status": ready()}
    if not count:
        return [bound_pod]
    claim = held_claim(f"{name}-claim", {at: [f"gpu-{number}" for number in numbers]})
    claim["spec"]["devices"]["requests"] = [exactly(count=count)]
    uid = pod["metadata"]["uid"]
    claim["status"]["reservedFor"] = [{"resource": "pods", "name": name, "uid": uid}]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}
    claim["metadata"]["ownerReferences"] = [owner]
    bound_pod["status"]["resourceClaimStatuses"] = [{"name": f"gpu-{count}", "resourceClaimName": f"{name}-claim"}]
    return [bound_pod, claim]
