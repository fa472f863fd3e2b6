"""Pods and nodes that come and go: mostly replicas, some like no other, some that fit nowhere."""

from __future__ import annotations

from typing import Final

from tests import manifests
from tests.manifests import HOSTNAME, ZONE, Json

NODES: Final = 100


def numbered_node(number: int) -> Json:
    return manifests.node(f"node-{number}", "64", memory="256Gi", pods="500", labels={ZONE: f"zone-{number % 3}"})


def numbered_pod(number: int) -> Json:
    app = f"app-{number % 20}"
    spec: Json = {}
    labels = {"app": app, "pod-template-hash": f"{number // 5000}"}
    if number % 10 == 3:
        labels["run"] = f"run-{number}"
    if number % 10 == 6:
        selector = {"matchLabels": {"app": app}}
        constraint = {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
        spec["topologySpreadConstraints"] = [{**constraint, "labelSelector": selector}]
    if number % 50 == 9:
        term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"run": f"run-{number}"}}}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    image = f"unique-{number}" if "run" in labels else app
    cpu = "1000" if fits_nowhere(number) else "100m"
    return manifests.pod(f"pod-{number}", cpu, image=image, labels=labels, **spec)


def fits_nowhere(number: int) -> bool:
    return number % 200 == 77
