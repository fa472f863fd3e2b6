"""Quotas, and clusters that are scheduled with them."""

from __future__ import annotations

from random import Random
from typing import Any

from podium.engine.manifests import read_manifest
from podium.engine.offline import OfflineHandle
from podium.engine.store import ObjectStore
from podium.lib.clock import ManualClock
from podium.library import Cluster
from podium.objects.resource_types import PODS
from podium.plugins.contrib.capacity_scheduling.objects import ELASTIC_QUOTAS, ElasticQuota
from podium.plugins.contrib.capacity_scheduling.plugin import CapacityScheduling
from podium.queues import Nominator

CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {
                "multiPoint": {"enabled": [{"name": "CapacityScheduling"}]},
                "postFilter": {"enabled": [{"name": "CapacityScheduling"}], "disabled": [{"name": "*"}]},
            },
        }
    ],
}


def quota(namespace: str, name: str = "quota", created: str = "", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, **({"creationTimestamp": created} if created else {})}
    return {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": metadata, "spec": spec}


def pod(key: str, cpu: str = "1", node: str = "", priority: int = 0, memory: str = "", **fields: Any) -> dict[str, Any]:
    namespace, _, name = key.partition("/")
    requests = {"cpu": cpu, **({"memory": memory} if memory else {})}
    container = {"name": "c", "resources": {"requests": fields.pop("requests", requests)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": fields.pop("labels", {})},
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [container],
            "priority": priority,
            **({"nodeName": node} if node else {}),
            **fields.pop("spec", {}),
        },
        "status": {"phase": "Running" if node else "Pending", **fields.pop("status", {})},
    }


def node(name: str, cpu: str = "10", **allocatable: str) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi", **allocatable}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def cluster(*objects: dict[str, Any], config: dict[str, Any] = CONFIG) -> Cluster:
    from podium.plugins.contrib import CONTRIB

    return Cluster.load(list(objects), config, plugins=list(CONTRIB.values()))


class Store:
    """Objects that change under a plugin."""

    def __init__(self, *objects: dict[str, Any]) -> None:
        self.objects = ObjectStore.of(objects)
        self.nominator = Nominator(self.objects.objects(PODS).get)
        clock = ManualClock()
        self.handle = OfflineHandle(clock, Random(1), self.nominator, lambda: None, self.objects.lister)  # type: ignore[arg-type, return-value]

    def put(self, manifest: dict[str, Any]) -> Any:
        resource = ELASTIC_QUOTAS if manifest["kind"] == "ElasticQuota" else PODS
        item: Any = read_manifest(manifest, resource)
        self.objects.put(resource, item)
        return item

    def drop(self, item: Any) -> None:
        self.objects.drop(ELASTIC_QUOTAS if isinstance(item, ElasticQuota) else PODS, item)


__all__ = ["CONFIG", "CapacityScheduling", "Store", "cluster", "node", "pod", "quota"]
