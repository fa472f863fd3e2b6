"""What random clusters have beyond nodes and plain pods: gangs of both kinds, devices with claims, and volumes."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tests import device_manifests, gang_manifests, workload_manifests
from tests.device_manifests import claiming, exactly, held_claim, resource_claim
from tests.gang_manifests import COSCHEDULING, UPSTREAM
from tests.manifests import HOSTNAME, ZONE, Json, pod
from tests.outlook.times import GRACES_S, time_text

GANG: Final = "wait-train"
"""The name of the gang, with which those of its members begin."""
_CLASS: Final = "local"


def extras(seed: int, objects: list[Json]) -> tuple[list[Json], Json | None]:
    """Return objects to add to a cluster of that seed, and the configuration that they need; None for the default.

    Running pods of the cluster may get claims. The pods that wait are younger than others and follow them by name: so
    a scheduler that starts only now hears of them in the order of their age.
    """
    chance = Random(f"extras of {seed}")
    kinds = [kind for kind in (_gang, _devices, _volumes) if chance.random() < 0.3]
    additions: list[Json] = []
    config: Json | None = None
    for kind in kinds:
        additions += kind(chance, objects)
    if any(manifest["apiVersion"].startswith(COSCHEDULING) for manifest in additions):
        config = gang_manifests.with_coscheduling(permitWaitingTimeSeconds=5, podGroupBackoffSeconds=0)
        config["profiles"][0]["schedulerName"] = "default-scheduler"
    return additions, config


def _waiting(manifest: Json, since_s: int) -> Json:
    """Complete a pod that waits: its UID, and since when."""
    name = manifest["metadata"]["name"]
    manifest["metadata"] |= {"creationTimestamp": time_text(since_s), "uid": f"uid-{name}"}
    return manifest


def _spec(chance: Random) -> Json:
    spec: Json = {"terminationGracePeriodSeconds": chance.choice(GRACES_S)}
    if chance.random() < 0.4:
        spec |= {"priority": chance.choice((-200, 10, 50)), "preemptionPolicy": "Never"}
    return spec


# ---------------------------------------------------------------- gangs


def _gang(chance: Random, objects: list[Json]) -> list[Json]:
    kind = chance.choice((UPSTREAM, COSCHEDULING))
    size = chance.randint(2, 4)
    minimum = size if chance.random() < 0.6 else chance.randint(1, size + 1)
    spec = _spec(chance) | {"restartPolicy": chance.choice(("Always", "Always", "Never"))}
    # No member waits for a preemption: those of gangs are not foreseen.
    spec["preemptionPolicy"] = "Never"
    cpu = f"{chance.choice((200, 700, 1400, 1900))}m"
    members = gang_manifests.members(kind, size, GANG, cpu=cpu, scheduler=None, **spec)
    for member in members:
        member["metadata"]["labels"]["app"] = GANG
    group = [] if chance.random() < 0.05 else [gang_manifests.group(kind, minimum, GANG)]
    for manifest in group:
        # Coscheduling goes by the age of the group: younger than all pods, of which a scheduler hears when it starts.
        manifest["metadata"]["creationTimestamp"] = time_text(1)
    return [*group, *(_waiting(member, index - 15) for index, member in enumerate(members))]


# ---------------------------------------------------------------- devices


def _devices(chance: Random, objects: list[Json]) -> list[Json]:
    """Devices on some nodes, pods that hold some of them, and pods that wait for some."""
    additions = [
        device_manifests.device_class(),
        workload_manifests.device_claim_template("one", exactly()),
        workload_manifests.device_claim_template("two", exactly(count=2)),
    ]
    for node in [manifest for manifest in objects if manifest["kind"] == "Node"]:
        count = chance.choice((0, 1, 2, 3))
        name = node["metadata"]["name"]
        if not count:
            continue
        additions.append(device_manifests.resource_slice(name, device_manifests.devices(count), node=name))
        pods = [manifest for manifest in objects if manifest["kind"] == "Pod" and _node_of(manifest) == name]
        for index, holder in enumerate(pods[:count]):
            if chance.random() < 0.7:
                claim = f"held-{name}-{index}"
                holder["spec"]["resourceClaims"] = claiming(claim)
                additions.append(
                    _with_defaults(held_claim(claim, {name: [f"gpu-{index}"]}, [holder["metadata"]["name"]]))
                )
    if chance.random() < 0.5:
        additions.append(_with_defaults(resource_claim("shared", exactly())))
    uses = [workload_manifests.claims_from("one"), workload_manifests.claims_from("two")]
    uses += [claiming("shared")] * 2
    for index in range(chance.randint(1, 3)):
        spec = _spec(chance) | {"resourceClaims": chance.choice(uses)}
        additions.append(_waiting(_pod(f"wait-gpu-{index}", chance, spec), index - 25))
    return additions


def _with_defaults(claim: Json) -> Json:
    """The claim with the fields that an API server fills in: those of a claim never change."""
    (request,) = claim["spec"]["devices"]["requests"]
    exact = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    if claim["status"]:
        # The scheduler has added it: with it devices are given back.
        claim["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    claim["spec"] = {"devices": {"requests": [{"name": request["name"], "exactly": exact}]}}
    return claim


def _node_of(manifest: Json) -> str:
    return str(manifest["spec"].get("nodeName", ""))


def _pod(name: str, chance: Random, spec: Json) -> Json:
    cpu = f"{chance.choice((100, 500, 1400))}m"
    return pod(name, cpu, labels={"app": chance.choice(("web", "db"))}, scheduler=None, **spec)


# ---------------------------------------------------------------- volumes


def _volumes(chance: Random, objects: list[Json]) -> list[Json]:
    """Volumes that lie in a zone or on a node, bound or not, and pods that wait for them."""
    nodes = [manifest["metadata"]["labels"] for manifest in objects if manifest["kind"] == "Node"]
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": _CLASS},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    additions = [storage_class]
    for index in range(chance.randint(1, 3)):
        name, labels, key = f"data-{index}", chance.choice(nodes), chance.choice((HOSTNAME, ZONE))
        is_bound = chance.random() < 0.6
        mode = chance.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"))
        if chance.random() < 0.9:
            additions += [_volume(name, mode, key, labels[key], is_bound), _claim(name, mode, is_bound)]
        holders = [item for item in objects if item["kind"] == "Pod" and _is_in(item, objects, key, labels[key])]
        if is_bound and holders and chance.random() < 0.4:
            _add_volume(chance.choice(holders), name)
        waiting_pod = _waiting(_pod(f"wait-store-{index}", chance, _spec(chance)), index - 20)
        _add_volume(waiting_pod, name)
        additions.append(waiting_pod)
    return additions


def _is_in(manifest: Json, objects: list[Json], key: str, value: str) -> bool:
    """Whether the pod is on a node with that label."""
    names = {
        item["metadata"]["name"]
        for item in objects
        if item["kind"] == "Node" and item["metadata"]["labels"].get(key) == value
    }
    return _node_of(manifest) in names


def _add_volume(manifest: Json, claim: str) -> None:
    volumes = manifest["spec"].setdefault("volumes", [])
    volumes.append({"name": claim, "persistentVolumeClaim": {"claimName": claim}})


def _volume(name: str, mode: str, key: str, value: str, is_bound: bool) -> Json:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    spec: dict[str, Any] = {
        "capacity": {"storage": "5Gi"},
        "accessModes": [mode],
        "storageClassName": _CLASS,
        "persistentVolumeReclaimPolicy": "Retain",
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        "local": {"path": "/data"},
    }
    if is_bound:
        spec["claimRef"] = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name, "uid": f"uid-{name}"}
    status = {"phase": "Bound" if is_bound else "Available"}
    metadata = {"name": f"pv-{name}", "uid": f"uid-pv-{name}"}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec, "status": status}


def _claim(name: str, mode: str, is_bound: bool) -> Json:
    metadata: Json = {"uid": f"uid-{name}"}
    fields: Json = {"accessModes": [mode]}
    if is_bound:
        metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        fields["volumeName"] = f"pv-{name}"
    status = {"phase": "Bound" if is_bound else "Pending"}
    return workload_manifests.claim(name, storage_class=_CLASS, metadata=metadata, status=status, **fields)
