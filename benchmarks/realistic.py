"""Nodes and running pods as large as those of a real cluster: what a scheduler has to read when it starts.

A node has about 10 KB (fifty images, attached volumes), a pod 2 to 8 KB (one or two containers, environment, probes,
mounts, statuses), of which the note of who set which field is a third.
"""

from __future__ import annotations

from typing import Final

from benchmarks import nodes, pods
from benchmarks.nodes import Json

APPS: Final = 500

_IMAGES = 30
_VOLUMES = 4
_STARTED = "2026-01-01T00:00:10Z"


def node(number: int) -> Json:
    """About 10 KB."""
    wire = nodes.node(number)
    wire["status"]["images"] = [nodes.image(number % 11 + index) for index in range(_IMAGES)]
    volumes = [f"kubernetes.io/csi/driver.invalid^volume-{number}-{index}" for index in range(_VOLUMES)]
    wire["status"]["volumesInUse"] = volumes
    wire["status"]["volumesAttached"] = [{"name": volume, "devicePath": ""} for volume in volumes]
    return wire


def running_pod(number: int, node_count: int) -> Json:
    """2 to 8 KB, by its app, a third of which are bare; on the nodes in turn."""
    app = number % APPS
    name = f"app-{app:03}"
    wire = pods.bind(pods.pod(f"{name}-{number:06}", name), nodes.name(number % node_count))
    wire["metadata"]["labels"] |= {"app.kubernetes.io/name": name, "pod-template-hash": f"{app:010x}"}
    if app % 3 == 0:
        return wire
    containers = [_container(app, index) for index in range(app % 3)]
    wire["metadata"]["annotations"] = {"checksum/config": f"{app:064x}", "prometheus.io/scrape": "true"}
    wire["metadata"]["ownerReferences"] = [_owner(name, app)]
    wire["spec"] |= {
        "containers": containers,
        "serviceAccountName": name,
        "volumes": [{"name": "config", "configMap": {"name": name}}, _TOKEN_VOLUME],
    }
    wire["status"] |= {
        "conditions": [_condition(kind) for kind in _CONDITIONS],
        "containerStatuses": [_status(container["name"], container["image"], number) for container in containers],
        "hostIP": f"172.16.{number >> 8 & 255}.{number & 255}",
        "podIP": f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}",
        "startTime": _STARTED,
    }
    return wire


_CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
_TOKEN_VOLUME: Final = {
    "name": "kube-api-access",
    "projected": {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        ],
    },
}


def _container(app: int, index: int) -> Json:
    resources = {"cpu": "100m", "memory": "200Mi"}
    return {
        "name": f"container-{index}",
        "image": f"registry.invalid/service-{app}-{index}:1",
        "env": [{"name": f"SETTING_{index}", "value": f"value-{app}-{index}"} for index in range(app % 8)],
        "ports": [{"name": "http", "containerPort": 8080 + index}],
        "resources": {"requests": resources, "limits": resources},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080 + index}, "periodSeconds": 10},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/app", "readOnly": True},
            {"name": _TOKEN_VOLUME["name"], "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
        ],
    }


def _owner(name: str, app: int) -> Json:
    uid = f"00000000-0000-4000-9000-{app:012x}"
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": uid, "controller": True}


def _condition(kind: str) -> Json:
    return {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": _STARTED}


def _status(name: str, image: str, number: int) -> Json:
    return {
        "name": name,
        "image": image,
        "imageID": f"{image}@sha256:{number:064x}",
        "containerID": f"containerd://{number:064x}",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": _STARTED}},
    }
