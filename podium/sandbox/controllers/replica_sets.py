"""Keep the number of pods that a ReplicaSet specifies.

Source: kubernetes pkg/controller/replicaset (v1.36).
Differs: a ready pod is available at once, whatever minReadySeconds says; the creation of a pod that fails is retried
after a second.
"""

from __future__ import annotations

from typing import Any

from podium.sandbox.controllers.ownership import controller_of
from podium.sandbox.controllers.pods import PODS, create_pod, is_active, is_ready
from podium.sandbox.controllers.scale_down import replica_set_victims
from podium.sandbox.errors import ApiError
from podium.sandbox.journal import Record
from podium.sandbox.resources import resource_named
from podium.sandbox.store import Store, timestamp

Json = dict[str, Any]

REPLICA_SETS = resource_named("replicasets")
_BURST = 500  # pods created per round


def reconcile(store: Store, record: Record, pods: list[Record]) -> bool:
    """Create or delete pods and write the status. Returns whether to retry without a further change."""
    active = [pod for pod in pods if is_active(pod.obj)]
    missing = record.obj["spec"].get("replicas", 1) - len(active)
    refusal = ""
    try:
        for _ in range(min(missing, _BURST)):
            create_pod(store, record.obj)
    except ApiError as error:
        refusal = error.message
    if missing < 0:
        victims = replica_set_victims(active, _related_pods(store, record), -missing, store.now())
        for pod in victims:
            store.delete_record(PODS, pod, {})
        active = [pod for pod in active if pod not in victims]
    _write_status(store, record, active, refusal)
    return bool(refusal)


def _related_pods(store: Store, record: Record) -> list[Record]:
    """Return the pods of all ReplicaSets of the same Deployment; none without a Deployment."""
    owner = controller_of(record.obj)
    if owner is None:
        return []
    siblings = {
        sibling.obj["metadata"]["uid"]
        for key, sibling in store.collection(REPLICA_SETS).records.items()
        if key[0] == record.key[0] and (controller_of(sibling.obj) or {}).get("uid") == owner.get("uid")
    }
    return [
        pod
        for key, pod in store.collection(PODS).records.items()
        if key[0] == record.key[0] and (controller_of(pod.obj) or {}).get("uid") in siblings
    ]


def _write_status(store: Store, record: Record, pods: list[Record], refusal: str) -> None:
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
    if refusal:
        # Keep the first reason: the message names a pod, so it would differ each time and cause endless updates.
        previous_conditions = (replica_set.get("status") or {}).get("conditions")
        failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": refusal}
        status["conditions"] = previous_conditions or [failure | {"lastTransitionTime": timestamp(store.now())}]
    store.replace_record(
        REPLICA_SETS, record, replica_set | {"metadata": dict(replica_set["metadata"]), "status": status}
    )


def _has(pod: Record, labels: Json) -> bool:
    return labels.items() <= (pod.obj["metadata"].get("labels") or {}).items()
