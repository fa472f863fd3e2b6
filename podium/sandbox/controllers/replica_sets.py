"""Keep the number of pods that a ReplicaSet specifies.

Source: kubernetes pkg/controller/replicaset (v1.36).
Differs: a ready pod is available at once, whatever minReadySeconds says; the creation of a pod that fails is retried
after a second.
"""

from __future__ import annotations

from typing import Any

from podium.sandbox.controllers.pods import PODS, create_pod, deletion_order, is_active, is_ready
from podium.sandbox.errors import ApiError
from podium.sandbox.journal import Record
from podium.sandbox.resources import resource_named
from podium.sandbox.store import Store, timestamp

Json = dict[str, Any]

REPLICA_SETS = resource_named("replicasets")
_BURST = 500  # pods created per round


def reconcile(store: Store, record: Record, pods: list[Record]) -> bool:
    """Create or delete pods and write the status. Returns whether to retry without a further change."""
    active = sorted((pod for pod in pods if is_active(pod.obj)), key=deletion_order)
    missing = record.obj["spec"].get("replicas", 1) - len(active)
    refused = ""
    try:
        for _ in range(min(missing, _BURST)):
            create_pod(store, record.obj)
    except ApiError as error:
        refused = error.message
    surplus = max(0, -missing)
    for pod in active[:surplus]:
        store.delete_record(PODS, pod, {})
    _write_status(store, record, active[surplus:], refused)
    return bool(refused)


def _write_status(store: Store, record: Record, pods: list[Record], refused: str) -> None:
    replica_set = record.obj
    labels = ((replica_set["spec"].get("template") or {}).get("metadata") or {}).get("labels") or {}
    ready = sum(is_ready(pod.obj) for pod in pods)
    status: Json = {
        "replicas": len(pods),
        "fullyLabeledReplicas": sum(_has(pod, labels) for pod in pods),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "observedGeneration": replica_set["metadata"].get("generation", 1),
    }
    if refused:
        # Keep the first reason: the message names a pod, so it would differ each time and cause endless updates.
        told = (replica_set.get("status") or {}).get("conditions")
        failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": refused}
        status["conditions"] = told or [failure | {"lastTransitionTime": timestamp(store.now())}]
    store.replace_record(
        REPLICA_SETS, record, replica_set | {"metadata": dict(replica_set["metadata"]), "status": status}
    )


def _has(pod: Record, labels: Json) -> bool:
    return labels.items() <= (pod.obj["metadata"].get("labels") or {}).items()
