"""Carries a plan out on a real control plane, and writes down what was there and what came of the step."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Iterable

from tests.control_plane.catalogue import kubernetes_version
from tests.control_plane.client import ApiError, Client
from tests.parity.workloads.mirror import PODS
from tests.parity.workloads.naming import Json, key_of
from tests.parity.workloads.outcome import outcome_of
from tests.parity.workloads.plan import Plan
from tests.parity.workloads.plane import Plane, RestlessError, is_bound

COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "CSIDriver": "/apis/storage.k8s.io/v1/csidrivers",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "CSIStorageCapacity": "/apis/storage.k8s.io/v1/csistoragecapacities",
    "LimitRange": "/api/v1/limitranges",
    "ResourceQuota": "/api/v1/resourcequotas",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/persistentvolumeclaims",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/resourceclaimtemplates",
    "ResourceClaim": "/apis/resource.k8s.io/v1/resourceclaims",
    "PodDisruptionBudget": "/apis/policy/v1/poddisruptionbudgets",
    "DaemonSet": "/apis/apps/v1/daemonsets",
    "StatefulSet": "/apis/apps/v1/statefulsets",
    "ReplicationController": "/api/v1/replicationcontrollers",
    "ReplicaSet": "/apis/apps/v1/replicasets",
    "Deployment": "/apis/apps/v1/deployments",
    "Job": "/apis/batch/v1/jobs",
    "Pod": "/api/v1/pods",
}
_CLUSTER_SCOPED = frozenset(
    {
        "Namespace",
        "Node",
        "PriorityClass",
        "RuntimeClass",
        "StorageClass",
        "CSIDriver",
        "CSINode",
        "PersistentVolume",
        "DeviceClass",
        "ResourceSlice",
    }
)
_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_FIELD_MANAGER = "tests"
_PLACED_S_MAX = 20.0
_EVICTION_INTERVAL_S = 0.3


def path_of(kind: str, namespace: str, name: str = "") -> str:
    """The path of an object, or of where objects of its kind are created."""
    collection = COLLECTIONS[kind]
    if kind not in _CLUSTER_SCOPED:
        group, _, plural = collection.rpartition("/")
        collection = f"{group}/namespaces/{namespace}/{plural}"
    return f"{collection}/{name}" if name else collection


async def record(plane: Plane, plan: Plan, *, is_otherwise: bool) -> Json:
    """The question and its answer.

    Args:
        is_otherwise: evict pods in the reverse order, and let pods end only when everything else has come to rest.

    Raises:
        RestlessError: the cluster did not come to rest, or chance decided.
    """
    plane.stand_ins.are_ends_slow = False
    await plane.empty()
    plane.stand_ins.follow(plan)
    await _set_up(plane, plan)
    objects = await _dump(plane.client)
    plane.stand_ins.are_ends_slow = is_otherwise
    position, refusals = plane.log_position(), list[Json]()
    plane.mirror.preempted.clear()
    ((action, value),) = plan.step.items()
    blocked_keys: list[str] = []
    if action == "apply":
        refusals = [refusal for item in value if (refusal := await _apply(plane.client, item)) is not None]
    elif action == "scale":
        await _scale(plane.client, value)
    elif action == "drain":
        blocked_keys = await _drain(plane, value, in_reverse=is_otherwise)
    elif action == "delete":
        path = path_of(value["kind"], value["namespace"], value["name"])
        await plane.client.request("DELETE", path, {"propagationPolicy": "Background"})
    else:
        await _delete_node(plane, value)
    await plane.settle()
    if ties := plane.ties_since(position):
        raise RestlessError(f"chance chose among the best nodes: {ties[0]}")
    question = {"id": plan.id, "category": plan.category, "at": _now(), "objects": objects, "step": plan.step}
    question["minor"] = kubernetes_version().rpartition(".")[0]
    question["assume"] = {"provisioned": plan.provisioned}
    objects_after = await _dump(plane.client)
    refusals += await _refusals(plane.client)
    question["expect"] = outcome_of(question, objects_after, [*plane.mirror.preempted.values()], refusals, blocked_keys)
    return question


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# ---------------------------------------------------------------- before the step


async def _set_up(plane: Plane, plan: Plan) -> None:
    await _create_all(plane.client, plan.settings)
    await _create_all(plane.client, plan.workloads)
    await _wait_placed(plane)
    await _create_all(plane.client, plan.nodes)
    await _create_all(plane.client, plan.daemons)
    await plane.settle()
    plane.stand_ins.place_no_more()
    if plan.late:
        for item in plan.late:
            await _apply(plane.client, item)
        await plane.settle()
    # The events of before would be taken for refusals of the step.
    for event in await plane.client.list("/api/v1/events"):
        await plane.client.delete(
            f"/api/v1/namespaces/{event['metadata']['namespace']}/events/{event['metadata']['name']}"
        )


async def _create_all(client: Client, items: Iterable[Json]) -> None:
    for item in items:
        await _create(client, item)


async def _create(client: Client, item: Json) -> None:
    await client.create(path_of(item["kind"], item["metadata"].get("namespace", "")), item)
    if item["kind"] == "Node":
        await client.patch(f"{path_of('Node', '', item['metadata']['name'])}/status", {"status": item["status"]})


async def _wait_placed(plane: Plane) -> None:
    """Wait until each pod that has a planned node is bound; less, if controllers may not create all."""
    for _ in range(int(_PLACED_S_MAX * 10)):
        pods = plane.mirror.items(PODS)
        if sum(map(is_bound, pods)) >= plane.stand_ins.planned_count:
            return
        await asyncio.sleep(0.1)
    raise RestlessError("not all pods came into being")


async def _dump(client: Client) -> list[Json]:
    """All objects, as `kubectl get -o json` shows them."""
    objects: list[Json] = []
    for kind, collection in COLLECTIONS.items():
        page = await client.get(collection)
        for item in page["items"]:
            item["metadata"].pop("managedFields", None)
            objects.append({"apiVersion": page["apiVersion"], "kind": kind, **item})
    return objects


# ---------------------------------------------------------------- the step


async def _apply(client: Client, item: Json) -> Json | None:
    """Create or change the object; returns what the API server has against it."""
    meta = item["metadata"]
    namespace = meta.get("namespace", "")
    try:
        try:
            await _create(client, item)
        except ApiError as problem:
            if problem.status != 409:
                raise
            path = path_of(item["kind"], namespace, meta["name"])
            await client.patch(path, item, "apply", fieldManager=_FIELD_MANAGER, force="true")
    except ApiError as problem:
        if problem.status not in (403, 422):
            raise
        name = meta.get("name") or f"{meta['generateName']}*"
        return {"object": f"{namespace}/{item['kind']}/{name}", "message": problem.body["message"]}
    return None


async def _scale(client: Client, scale: Json) -> None:
    path = path_of(scale["kind"], scale["namespace"], scale["name"])
    if scale["kind"] == "Job":
        await client.patch(path, {"spec": {"parallelism": scale["replicas"]}})
    else:
        await client.patch(f"{path}/scale", {"spec": {"replicas": scale["replicas"]}})


async def _drain(plane: Plane, node: str, *, in_reverse: bool) -> list[str]:
    """Cordon the node and evict its pods, again while budgets are in the way; returns the pods that remain."""
    path = path_of("Node", "", node)
    taints = (await plane.client.get(path))["spec"].get("taints", [])
    cordoned = [*(taint for taint in taints if taint["key"] != _CORDON["key"]), _CORDON]
    await plane.client.patch(path, {"spec": {"unschedulable": True, "taints": cordoned}})
    remaining = [pod for pod in plane.mirror.items(PODS) if pod["spec"].get("nodeName") == node and not _is_daemon(pod)]
    remaining.sort(key=key_of, reverse=in_reverse)
    while remaining:
        unevicted = [pod for pod in remaining if not await _evict(plane.client, pod)]
        if len(unevicted) == len(remaining):
            await plane.settle()
            unevicted = [pod for pod in remaining if not await _evict(plane.client, pod)]
            if len(unevicted) == len(remaining):
                break
        remaining = unevicted
        await asyncio.sleep(_EVICTION_INTERVAL_S)
    return [key_of(pod) for pod in remaining]


def _is_daemon(pod: Json) -> bool:
    return any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences", ()))


async def _evict(client: Client, pod: Json) -> bool:
    """Evict the pod; return True if it is deleted, or will be."""
    namespace, name = key_of(pod).split("/")
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": {"preconditions": {"uid": pod["metadata"]["uid"]}},
    }
    try:
        await client.create(f"{path_of('Pod', namespace, name)}/eviction", eviction)
    except ApiError as problem:
        if problem.status not in (404, 409, 429):
            raise
        return problem.status != 429
    return True


async def _delete_node(plane: Plane, node: str) -> None:
    """Delete the node, what describes it, and its pods, as the garbage collector of pods would later."""
    client = plane.client
    await client.delete(path_of("Node", "", node))
    for kind in ("CSINode", "ResourceSlice"):
        for item in (await client.get(COLLECTIONS[kind]))["items"]:
            if node in (item["metadata"]["name"], item["spec"].get("nodeName")):
                await client.delete(path_of(kind, "", item["metadata"]["name"]))
    for pod in plane.mirror.items(PODS):
        if pod["spec"].get("nodeName") == node:
            await client.delete(path_of("Pod", *key_of(pod).split("/")))


async def _refusals(client: Client) -> list[Json]:
    """Return the requests that the API server refused to controllers, as their events say."""
    refusals = {}
    for event in await client.list("/api/v1/events"):
        about = event["involvedObject"]
        if event.get("reason") == "FailedCreate":
            item = f"{about['namespace']}/{about['kind']}/{about['name']}"
            refusals[item] = {"object": item, "message": event["message"]}
    return list(refusals.values())
