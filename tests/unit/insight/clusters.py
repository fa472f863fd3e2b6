"""Random clusters as manifests, so that the same objects can be loaded again."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from podium.insight import Cluster
from podium.objects.core import Node, Pod
from podium.testing.random_clusters import random_cluster

SCHEDULER = "default-scheduler"


def manifest(item: Node | Pod) -> dict[str, Any]:
    """The object as an API server would hold it."""
    manifest = msgspec.json.decode(msgspec.json.encode(item))
    manifest.pop("nodeName", None)
    if isinstance(item, Pod):
        spec = manifest.setdefault("spec", {})
        spec["schedulerName"] = SCHEDULER
        if item.node_name:
            spec["nodeName"] = item.node_name
    return {"apiVersion": "v1", "kind": type(item).__name__, **manifest}


def random_objects(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The nodes and running pods of a random cluster, and three pending pods."""
    cluster = random_cluster(Random(seed))
    return [manifest(item) for item in (*cluster.nodes, *cluster.existing_pods)], [
        manifest(pod) for pod in cluster.incoming
    ]


def copies(pod: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Copies of the pod that preempt nobody."""
    name = pod["metadata"]["name"]
    return [
        {
            **pod,
            "metadata": {**pod["metadata"], "name": f"{name}-{number}", "uid": f"{name}-{number}"},
            "spec": {**pod["spec"], "preemptionPolicy": "Never"},
        }
        for number in range(count)
    ]


def count_bound(objects: list[dict[str, Any]], pods: list[dict[str, Any]]) -> int:
    """How many of the pods find a node in a cluster of its own, one after the other."""
    return sum(placement.node is not None for placement in Cluster.load(objects).place_all(pods))
