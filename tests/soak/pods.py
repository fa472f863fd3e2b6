"""Pods and nodes that come and go: mostly replicas, some like no other, some that fit nowhere."""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

NODES: Final = 100
_ZONE, _HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def node(number: int) -> Json:
    name = f"node-{number}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {_HOSTNAME: name, _ZONE: f"zone-{number % 3}"}},
        "spec": {},
        "status": {
            "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "500"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(number: int) -> Json:
    app = f"app-{number % 20}"
    container: Json = {"name": "main", "image": app, "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    spec: Json = {"schedulerName": "podium", "containers": [container]}
    labels = {"app": app, "pod-template-hash": f"{number // 5000}"}
    if number % 10 == 3:
        container["image"] = f"unique-{number}"
        labels["run"] = f"run-{number}"
    if number % 10 == 6:
        selector = {"matchLabels": {"app": app}}
        constraint = {"maxSkew": 5, "topologyKey": _ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
        spec["topologySpreadConstraints"] = [{**constraint, "labelSelector": selector}]
    if number % 50 == 9:
        term = {"topologyKey": _HOSTNAME, "labelSelector": {"matchLabels": {"run": f"run-{number}"}}}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    if fits_nowhere(number):
        container["resources"]["requests"]["cpu"] = "1000"
    metadata = {"name": f"pod-{number}", "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def fits_nowhere(number: int) -> bool:
    return number % 200 == 77
