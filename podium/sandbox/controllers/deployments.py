"""The ReplicaSets of a Deployment, one for each of its templates, and rolling updates between them.

Source: kubernetes pkg/controller/deployment (v1.36).
Differs: a Deployment that is scaled during a rolling update gives all new pods to the new ReplicaSet;
progressDeadlineSeconds is ignored.
"""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from podium.sandbox.controllers.ownership import owner_reference
from podium.sandbox.controllers.replica_sets import REPLICA_SETS
from podium.sandbox.controllers.rollout import Replicas, bounds, next_step
from podium.sandbox.errors import ApiError
from podium.sandbox.journal import Record
from podium.sandbox.pods import with_condition
from podium.sandbox.resources import resource_named
from podium.sandbox.store import Store, timestamp

Json = dict[str, Any]

DEPLOYMENTS = resource_named("deployments")
_HASH = "pod-template-hash"
_REVISION = "deployment.kubernetes.io/revision"
_NOT_COPIED = {"kubectl.kubernetes.io/last-applied-configuration", _REVISION}


def reconcile(store: Store, record: Record, replica_sets: list[Record]) -> bool:
    """Do one step of the rolling update and write the status. Returns whether to retry without a further change."""
    deployment, spec = record.obj, record.obj["spec"]
    sets = sorted(replica_sets, key=_revision)
    new = next((replica_set for replica_set in sets if _template(replica_set) == spec["template"]), None)
    if new is None and not spec.get("paused"):
        try:
            new = _create(store, deployment, _revision(sets[-1]) + 1 if sets else 1)
        except ApiError:
            return True
    elif new is not None and new is not sets[-1]:
        new = _set_revision(store, REPLICA_SETS, new, _revision(sets[-1]) + 1)
    old = [replica_set for replica_set in sets if new is None or replica_set.key != new.key]
    if new is not None:
        record = _set_revision(store, DEPLOYMENTS, record, _revision(new))
        new, old = _step(store, spec, new, old)
        old = _forget_old(store, spec, old)
    elif old:  # Paused before the new template got a ReplicaSet: scale the last one.
        old[-1] = _scale(store, old[-1], spec.get("replicas", 1))
    _write_status(store, record, new, old)
    return False


def _step(store: Store, spec: Json, new: Record, old: list[Record]) -> tuple[Record, list[Record]]:
    replicas = spec.get("replicas", 1)
    if (spec.get("strategy") or {}).get("type") == "Recreate":
        is_clear = not any(_count(replica_set, "replicas") for replica_set in old)
        new_replicas, old_replicas = replicas if is_clear else _replicas_wanted(new), [0] * len(old)
    elif not all(_is_observed(replica_set) for replica_set in (new, *old)):
        return new, old
    else:
        replicas_max, least = bounds(spec)
        new_replicas, old_replicas = next_step(
            replicas, replicas_max, least, _replicas(new), [_replicas(replica_set) for replica_set in old]
        )
    return _scale(store, new, new_replicas), [
        _scale(store, replica_set, count) for replica_set, count in zip(old, old_replicas, strict=True)
    ]


def _create(store: Store, deployment: Json, revision: int) -> Record:
    metadata, spec = deployment["metadata"], deployment["spec"]
    template, selector = spec["template"], spec["selector"]
    digest = hashlib.sha256(orjson.dumps(template, option=orjson.OPT_SORT_KEYS)).hexdigest()[:10]
    mark = {_HASH: digest}
    labels = ((template.get("metadata") or {}).get("labels") or {}) | mark
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key not in _NOT_COPIED}
    name = f"{metadata['name']}-{digest}"
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": annotations | {_REVISION: str(revision)},
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {
            "replicas": 0,
            "selector": selector | {"matchLabels": (selector.get("matchLabels") or {}) | mark},
            "template": template | {"metadata": (template.get("metadata") or {}) | {"labels": labels}},
        },
    }
    store.create(replica_set, namespace=metadata["namespace"])
    return store.record(REPLICA_SETS, metadata["namespace"], name)


def _template(replica_set: Record) -> Json:
    template: Json = replica_set.obj["spec"]["template"]
    metadata = template.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != _HASH}
    return template | {"metadata": metadata | {"labels": labels}}


def _scale(store: Store, record: Record, replicas: int) -> Record:
    if _replicas_wanted(record) == replicas:
        return record
    spec = record.obj["spec"] | {"replicas": replicas}
    return store.update_record(REPLICA_SETS, record, record.obj | {"spec": spec})


def _set_revision(store: Store, resource: Any, record: Record, revision: int) -> Record:
    metadata = record.obj["metadata"]
    annotations = (metadata.get("annotations") or {}) | {_REVISION: str(revision)}
    return store.replace_record(resource, record, record.obj | {"metadata": metadata | {"annotations": annotations}})


def _forget_old(store: Store, spec: Json, old: list[Record]) -> list[Record]:
    empty = [
        replica_set for replica_set in old if not _replicas_wanted(replica_set) and not _count(replica_set, "replicas")
    ]
    surplus = empty[: max(0, len(empty) - spec.get("revisionHistoryLimit", 10))]
    for replica_set in surplus:
        store.delete_record(REPLICA_SETS, replica_set, {})
    return [replica_set for replica_set in old if replica_set not in surplus]


def _write_status(store: Store, record: Record, new: Record | None, old: list[Record]) -> None:
    deployment, replica_sets = record.obj, [*old, *([new] if new else [])]
    replicas = deployment["spec"].get("replicas", 1)
    counts = {
        field: sum(_count(replica_set, field) for replica_set in replica_sets)
        for field in ("replicas", "readyReplicas", "availableReplicas")
    }
    updated, available = _count(new, "replicas") if new else 0, counts["availableReplicas"]
    counts |= {"updatedReplicas": updated, "unavailableReplicas": max(0, counts["replicas"] - available)}
    is_complete = updated == counts["replicas"] == available == replicas
    is_available = available >= bounds(deployment["spec"])[1]
    conditions = (deployment.get("status") or {}).get("conditions") or []
    time = timestamp(store.now())
    for kind, holds, reason in (
        ("Available", is_available, "MinimumReplicasAvailable" if is_available else "MinimumReplicasUnavailable"),
        ("Progressing", True, "NewReplicaSetAvailable" if is_complete else "ReplicaSetUpdated"),
    ):
        condition = {"type": kind, "status": str(holds), "reason": reason, "lastTransitionTime": time}
        conditions = with_condition(conditions, condition)
    status = counts | {"observedGeneration": deployment["metadata"].get("generation", 1), "conditions": conditions}
    store.replace_record(DEPLOYMENTS, record, deployment | {"metadata": dict(deployment["metadata"]), "status": status})


def _replicas(record: Record) -> Replicas:
    return Replicas(_replicas_wanted(record), _count(record, "availableReplicas"))


def _replicas_wanted(record: Record) -> int:
    replicas: int = record.obj["spec"].get("replicas", 1)
    return replicas


def _count(record: Record, field: str) -> int:
    count: int = (record.obj.get("status") or {}).get(field, 0)
    return count


def _is_observed(record: Record) -> bool:
    generation: int = record.obj["metadata"].get("generation", 1)
    return _count(record, "observedGeneration") >= generation


def _revision(record: Record) -> int:
    revision = (record.obj["metadata"].get("annotations") or {}).get(_REVISION, "0")
    return int(revision) if revision.isdecimal() else 0
