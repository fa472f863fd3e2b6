"""Pods to measure with, and the constraints that tell them apart.

Source: kubernetes test/integration/scheduler_perf (templates), v1.36.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from benchmarks.nodes import Json

SCHEDULER_NAME: Final = "bench"
NAMESPACE: Final = "default"
ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"

_IMAGE: Final = "registry.invalid/app:1"
# What admission adds to every pod.
_TOLERATIONS: Final = [
    {"key": f"node.kubernetes.io/{trouble}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for trouble in ("not-ready", "unreachable")
]


def pod(name: str, app: str, *, cpu: str = "100m", memory: str = "500Mi", **spec: Any) -> Json:
    """A pod of one container that waits for the scheduler under test, as it is after admission.

    Args:
        spec: goes into the pod's spec as it is.
    """
    resources = {"cpu": cpu, "memory": memory}
    container = {
        "name": "main",
        "image": _IMAGE,
        "ports": [{"containerPort": 80}],
        "resources": {"requests": resources, "limits": resources},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": app}},
        "spec": {
            "schedulerName": SCHEDULER_NAME,
            # So that a pod that is deleted goes at once: no kubelet is there to end it.
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
            "tolerations": _TOLERATIONS,
            **spec,
        },
        "status": {"phase": "Pending", "qosClass": "Guaranteed"},
    }


def bind(wire: Json, node: str) -> Json:
    """The pod as it is when it runs on that node. `MARK` tells it from those that are measured."""
    wire["metadata"]["labels"] |= MARK
    wire["spec"]["nodeName"] = node
    wire["status"] |= {"phase": "Running"}
    return wire


MARK: Final = {"benchmark": "before"}
"""The label of pods that were there before, and are not counted."""


def zone_is_one_of(*zones: str) -> Json:
    """Required node affinity."""
    return _required_node({"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]})


def node_is(name: str) -> Json:
    """Required node affinity as the controller of daemon sets writes it."""
    return _required_node({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]})


def _required_node(term: Json) -> Json:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def near(app: str, topology: str) -> Json:
    """Required pod affinity."""
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(app, topology)]}}


def rather_near(app: str, topology: str) -> Json:
    """Preferred pod affinity."""
    weighted_term = {"weight": 1, "podAffinityTerm": _term(app, topology)}
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted_term]}}


def apart(app: str, topology: str) -> Json:
    """Required pod anti-affinity."""
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(app, topology)]}}


def _term(app: str, topology: str) -> Json:
    return {"labelSelector": _selector(app), "topologyKey": topology}


def spread(app: str, topology: str, when_unsatisfiable: str) -> list[Json]:
    """One constraint. `when_unsatisfiable` is DoNotSchedule or ScheduleAnyway."""
    constraint = {"maxSkew": 5, "topologyKey": topology, "whenUnsatisfiable": when_unsatisfiable}
    return [{**constraint, "labelSelector": _selector(app)}]


def _selector(app: str) -> Mapping[str, Any]:
    return {"matchLabels": {"app": app}}
