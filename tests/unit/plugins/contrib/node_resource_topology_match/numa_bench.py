"""Nodes with NUMA nodes, and clusters that are scheduled by them."""

from __future__ import annotations

from typing import Any

from podium.library import Cluster
from podium.plugins.contrib import CONTRIB
from tests.unit.plugins.contrib.capacity_scheduling.quota_bench import node, pod

POLICY, SCOPE, COUNT = "topologyManagerPolicy", "topologyManagerScope", "topologyManagerMaxNUMANodes"


_NAMES = {"gpu": "example.com/gpu"}


def config(**args: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {"multiPoint": {"enabled": [{"name": "NodeResourceTopologyMatch"}]}},
                "pluginConfig": [{"name": "NodeResourceTopologyMatch", "args": args}],
            }
        ],
    }


def zone(number: int, costs: dict[int, int] | None = None, attributes: Any = (), **available: str) -> dict[str, Any]:
    return {
        "name": f"node-{number}",
        "type": "Node",
        "costs": [{"name": f"node-{other}", "value": value} for other, value in (costs or {}).items()],
        "attributes": list(attributes),
        "resources": [
            {
                "name": name.replace("gpu", "example.com/gpu"),
                "capacity": "64",
                "allocatable": "64Gi",
                "available": amount,
            }
            for name, amount in available.items()
        ],
    }


def topology(
    name: str, *zones: dict[str, Any], policies: tuple[str, ...] = (), annotations: Any = None, **attributes: str
) -> dict[str, Any]:
    attributes = attributes or {POLICY: "single-numa-node"}
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name, "annotations": annotations or {}},
        "topologyPolicies": list(policies),
        "attributes": [{"name": key, "value": value} for key, value in attributes.items()],
        "zones": list(zones),
    }


def guaranteed(key: str, *containers: dict[str, str], init: tuple[dict[str, str], ...] = (), **fields: Any) -> Any:
    """A pod whose containers have these requests, and limits equal to them."""
    item = pod(key, **fields)

    def made(name: str, requests: dict[str, str]) -> dict[str, Any]:
        requests = {"memory": "1Mi", **requests}
        always = {"restartPolicy": "Always"} if requests.pop("sidecar", "") else {}
        return {"name": name, "resources": {"requests": requests, "limits": requests}, **always}

    item["spec"]["containers"] = [made(f"c{number}", requests) for number, requests in enumerate(containers)]
    item["spec"]["initContainers"] = [made(f"i{number}", requests) for number, requests in enumerate(init)]
    return item


def cluster(*objects: dict[str, Any], **args: Any) -> Cluster:
    return Cluster.load(list(objects), config(**args), plugins=list(CONTRIB.values()))


def reason(world: Cluster, asked: Any, name: str = "n1") -> str:
    """Why the pod does not fit on the node; "" if it does."""
    verdict = world.schedule(asked).as_dict()["filter"].get(name)
    return ", ".join(verdict["reasons"]) if verdict else ""


def scores(world: Cluster, asked: Any) -> dict[str, int]:
    """The plugin's scores by node."""
    answer = world.schedule(asked).as_dict()["scores"]
    return {name: entry["plugins"]["NodeResourceTopologyMatch"] for name, entry in answer.items()}


__all__ = ["cluster", "config", "guaranteed", "node", "pod", "reason", "scores", "topology", "zone"]
