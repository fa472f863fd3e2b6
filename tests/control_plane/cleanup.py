"""Empties a cluster between tests, since no controller is there to collect anything."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.control_plane.client import ApiError, Client, Json

_AT_ONCE = 32


def _nothing(item: Json) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Resource:
    """A collection to empty. `keeps` says which of its objects belong to the API server itself."""

    group: str
    name: str
    keeps: Callable[[Json], bool] = _nothing

    @property
    def collection(self) -> str:
        return f"{self.group}/{self.name}"

    def path(self, item: Json) -> str:
        namespace = item["metadata"].get("namespace")
        middle = f"namespaces/{namespace}/" if namespace else ""
        return f"{self.group}/{middle}{self.name}/{item['metadata']['name']}"


def _has_name(pattern: str) -> Callable[[Json], bool]:
    return lambda item: re.fullmatch(pattern, item["metadata"]["name"]) is not None


_RBAC = "/apis/rbac.authorization.k8s.io/v1"

# Owners before what they own, pods before what protects or holds them, namespaces last.
RESOURCES = (
    Resource("/apis/apps/v1", "deployments"),
    Resource("/apis/apps/v1", "replicasets"),
    Resource("/apis/apps/v1", "statefulsets"),
    Resource("/apis/apps/v1", "daemonsets"),
    Resource("/apis/batch/v1", "jobs"),
    Resource("/api/v1", "replicationcontrollers"),
    Resource("/api/v1", "pods"),
    Resource("/apis/policy/v1", "poddisruptionbudgets"),
    Resource("/api/v1", "services", _has_name("kubernetes")),
    Resource("/api/v1", "configmaps", _has_name("extension-apiserver-.*|kube-apiserver-.*")),
    Resource("/apis/apps/v1", "controllerrevisions"),
    Resource("/api/v1", "limitranges"),
    Resource("/api/v1", "resourcequotas"),
    Resource("/api/v1", "secrets"),
    Resource("/api/v1", "serviceaccounts"),
    Resource("/apis/events.k8s.io/v1", "events"),
    Resource("/apis/coordination.k8s.io/v1", "leases", _has_name("apiserver-.*")),
    Resource("/apis/resource.k8s.io/v1", "resourceclaims"),
    Resource("/apis/resource.k8s.io/v1", "resourceclaimtemplates"),
    Resource("/apis/resource.k8s.io/v1", "resourceslices"),
    Resource("/apis/resource.k8s.io/v1", "deviceclasses"),
    Resource("/api/v1", "persistentvolumeclaims"),
    Resource("/api/v1", "persistentvolumes"),
    Resource("/apis/storage.k8s.io/v1", "storageclasses"),
    Resource("/apis/storage.k8s.io/v1", "csistoragecapacities"),
    Resource("/apis/storage.k8s.io/v1", "csidrivers"),
    Resource("/apis/storage.k8s.io/v1", "csinodes"),
    Resource("/apis/scheduling.k8s.io/v1", "priorityclasses", _has_name("system-.*")),
    Resource("/apis/node.k8s.io/v1", "runtimeclasses"),
    Resource(_RBAC, "rolebindings", _has_name("system:.*")),
    Resource(_RBAC, "roles", _has_name("system:.*|extension-apiserver-.*")),
    Resource(_RBAC, "clusterrolebindings", _has_name("system:.*|cluster-admin")),
    Resource(_RBAC, "clusterroles", _has_name("system:.*|cluster-admin|admin|edit|view")),
    Resource("/api/v1", "nodes"),
    Resource("/api/v1", "namespaces", _has_name("default|kube-.*")),
)


async def empty_cluster(client: Client) -> None:
    """Deletes everything a test can have made, finalizers included; what the API server made stays.

    A kind the server does not have is passed over, so this works against the sandbox too.
    Cost: about 50 ms for an empty cluster, and a millisecond per object.
    """
    limiter = asyncio.Semaphore(_AT_ONCE)
    for resource in RESOURCES:
        try:
            items = await client.list(resource.collection)
        except ApiError as problem:
            if problem.status == 404:
                continue
            raise
        async with asyncio.TaskGroup() as group:
            for item in items:
                if not resource.keeps(item):
                    group.create_task(_delete(client, resource, item, limiter))


async def _delete(client: Client, resource: Resource, item: Json, limiter: asyncio.Semaphore) -> None:
    path = resource.path(item)
    async with limiter:
        try:
            if item["metadata"].get("finalizers"):
                await client.patch(path, {"metadata": {"finalizers": None}})
            await client.delete(path)
            if resource.name == "namespaces":
                # The namespace controller's part: give up the finalizer once the namespace is empty.
                finalized = {"metadata": {"name": item["metadata"]["name"]}, "spec": {"finalizers": []}}
                await client.replace(f"{path}/finalize", finalized)
        except ApiError as problem:
            if problem.status != 404:
                raise
