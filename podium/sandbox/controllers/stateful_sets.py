"""The pods of a StatefulSet, each with an ordinal and claims of its own.

Source: kubernetes pkg/controller/statefulset (v1.36).
Differs: a ready pod is available at once, whatever minReadySeconds says; claims are always retained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from podium.sandbox.controllers.pods import FINISHED, PODS, create_pod, is_active, is_ready, phase_of
from podium.sandbox.controllers.revisions import (
    HASH_LABEL,
    forget_old,
    newest_revision,
    revision_named,
    template_of,
)
from podium.sandbox.errors import ApiError
from podium.sandbox.fields import items_at, mapping_at
from podium.sandbox.journal import Record
from podium.sandbox.resources import resource_named
from podium.sandbox.store import Store

Json = dict[str, Any]

STATEFUL_SETS = resource_named("statefulsets")
_VOLUME_CLAIMS = resource_named("persistentvolumeclaims")
_POD_NAME, _POD_INDEX = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"


@dataclass(frozen=True, slots=True)
class _Sync:
    """One sync of a StatefulSet.

    Attributes:
        current: the revision that the pods below the partition have.
        update: the revision of the present template.
    """

    store: Store
    stateful_set: Json
    current: Json
    update: Json

    @property
    def wanted(self) -> range:
        spec = self.stateful_set["spec"]
        start: int = mapping_at(spec, "ordinals").get("start", 0)
        return range(start, start + spec.get("replicas", 1))

    @property
    def is_ordered(self) -> bool:
        return bool(self.stateful_set["spec"].get("podManagementPolicy") != "Parallel")


def reconcile(store: Store, record: Record, pods: list[Record]) -> bool:
    """Create, delete or replace pods, and write the status. Returns whether to retry without a further change."""
    stateful_set = record.obj
    is_refused = False
    try:
        update = newest_revision(store, stateful_set)
    except ApiError:
        return True
    name = mapping_at(stateful_set, "status").get("currentRevision")
    # Without a known current revision every pod is of the newest one.
    sync = _Sync(store, stateful_set, revision_named(store, stateful_set, str(name)) or update, update)
    by_ordinal = {ordinal: pod for pod in pods if (ordinal := _ordinal(pod)) is not None}
    try:
        # One kind of change per sync, in upstream's order: create, scale down, roll.
        if not _complete(sync, by_ordinal) and not _condemn(sync, by_ordinal):
            _replace_outdated(sync, by_ordinal)
    except ApiError:
        is_refused = True
    _write_status(sync, record)
    return is_refused


def is_member(stateful_set: Json, pod: Json) -> bool:
    """Return whether the pod has a name that the StatefulSet would give it."""
    parent, _, ordinal = pod["metadata"]["name"].rpartition("-")
    return bool(parent == stateful_set["metadata"]["name"] and ordinal.isascii() and ordinal.isdecimal())


def _complete(sync: _Sync, by_ordinal: dict[int, Record]) -> bool:
    """Create the pods that are missing. Returns whether to wait, in order for the first that is not ready."""
    for ordinal in sync.wanted:
        pod = by_ordinal.get(ordinal)
        if pod is None:
            _create(sync, ordinal)
        elif phase_of(pod.obj) in FINISHED:
            if "deletionTimestamp" not in pod.obj["metadata"]:
                sync.store.delete_record(PODS, pod, {})
        # Claims may have been deleted, or refused by a quota, while the pod waits.
        elif phase_of(pod.obj) == "Pending":
            _create_claims(sync, pod.key[1])
        if sync.is_ordered and (pod is None or not _is_healthy(pod)):
            return True
    return False


def _condemn(sync: _Sync, by_ordinal: dict[int, Record]) -> bool:
    """Delete the pods beyond the replicas, the highest first. Returns whether to wait.

    In order, an unready pod blocks those below it, unless it is the first of all unready ones.
    """
    condemned = sorted((ordinal for ordinal in by_ordinal if ordinal not in sync.wanted), reverse=True)
    if not sync.is_ordered:
        for ordinal in condemned:
            if is_active(by_ordinal[ordinal].obj) or phase_of(by_ordinal[ordinal].obj) in FINISHED:
                sync.store.delete_record(PODS, by_ordinal[ordinal], {})
        return False
    if condemned:
        ordinals = [*(ordinal for ordinal in sync.wanted if ordinal in by_ordinal), *reversed(condemned)]
        first_unhealthy = next((ordinal for ordinal in ordinals if not _is_healthy(by_ordinal[ordinal])), None)
        highest = by_ordinal[condemned[0]]
        # Upstream scales down only past healthy pods, unless the highest is the first that is not.
        is_blocked = not _is_healthy(highest) and condemned[0] != first_unhealthy
        if "deletionTimestamp" not in highest.obj["metadata"] and not is_blocked:
            sync.store.delete_record(PODS, highest, {})
    return bool(condemned)


def _replace_outdated(sync: _Sync, by_ordinal: dict[int, Record]) -> None:
    """Delete the next pod of an older revision, from the highest ordinal down to the partition."""
    strategy = mapping_at(sync.stateful_set, "spec", "updateStrategy")
    if strategy.get("type") == "OnDelete":
        return
    partition: int = mapping_at(strategy, "rollingUpdate").get("partition", 0)
    digest = _label_of(sync.update)
    for ordinal in reversed(sync.wanted[partition:]):
        pod = by_ordinal.get(ordinal)
        if pod is None:
            return
        is_old = mapping_at(pod.obj, "metadata", "labels").get(HASH_LABEL) != digest
        if is_old and "deletionTimestamp" not in pod.obj["metadata"]:
            sync.store.delete_record(PODS, pod, {})
            return
        # One pod at a time: the next goes only once this one is back.
        if not _is_healthy(pod):
            return


def _create(sync: _Sync, ordinal: int) -> None:
    """Create the pod of an ordinal, and its claims before it."""
    stateful_set = sync.stateful_set
    spec = stateful_set["spec"]
    partition = mapping_at(spec, "updateStrategy", "rollingUpdate").get("partition", 0)
    # Below the partition pods keep the current revision, also if they are created anew.
    revision = sync.current if ordinal < sync.wanted.start + partition else sync.update
    name = f"{stateful_set['metadata']['name']}-{ordinal}"
    _create_claims(sync, name)
    template = template_of(revision)
    pod_spec = mapping_at(template, "spec") | {"hostname": name, "subdomain": spec.get("serviceName", "")}
    claims = {template["metadata"]["name"]: _claim_name(template, name) for template in _claim_templates(stateful_set)}
    if claims:
        claim_volumes = [
            {"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in claims.items()
        ]
        volumes = [volume for volume in items_at(pod_spec, "volumes") if volume.get("name") not in claims]
        pod_spec["volumes"] = [*claim_volumes, *volumes]
    labels = {_POD_NAME: name, _POD_INDEX: str(ordinal), HASH_LABEL: _label_of(revision)}
    create_pod(sync.store, stateful_set, template=template | {"spec": pod_spec}, name=name, labels=labels)


def _create_claims(sync: _Sync, pod_name: str) -> None:
    namespace = sync.stateful_set["metadata"]["namespace"]
    match_labels = mapping_at(sync.stateful_set, "spec", "selector", "matchLabels")
    records = sync.store.collection(_VOLUME_CLAIMS).records
    for template in _claim_templates(sync.stateful_set):
        name = _claim_name(template, pod_name)
        if (namespace, name) not in records:
            labels = mapping_at(template, "metadata", "labels") | match_labels
            metadata = {"name": name, "labels": labels}
            if annotations := mapping_at(template, "metadata", "annotations"):
                metadata["annotations"] = annotations
            claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
            sync.store.create(claim | {"spec": mapping_at(template, "spec")}, namespace=namespace)


def _claim_templates(stateful_set: Json) -> list[Json]:
    templates = items_at(stateful_set, "spec", "volumeClaimTemplates")
    return [template for template in templates if mapping_at(template, "metadata").get("name")]


def _claim_name(template: Json, pod_name: str) -> str:
    return f"{template['metadata']['name']}-{pod_name}"


def _ordinal(pod: Record) -> int | None:
    text = pod.key[1].rpartition("-")[2]
    return int(text) if text.isascii() and text.isdecimal() else None


def _is_healthy(pod: Record) -> bool:
    return is_active(pod.obj) and phase_of(pod.obj) == "Running" and is_ready(pod.obj)


def _label_of(revision: Json) -> str:
    return str(revision["metadata"]["name"])


def _write_status(sync: _Sync, record: Record) -> None:
    store, stateful_set = sync.store, sync.stateful_set
    present = store.collection(PODS).records
    names = [(record.key[0], f"{record.key[1]}-{ordinal}") for ordinal in sync.wanted]
    pods = [present[key] for key in names if key in present]
    status: Json = _counts(pods, _label_of(sync.current), _label_of(sync.update))
    status |= {
        "observedGeneration": stateful_set["metadata"].get("generation", 1),
        "currentRevision": _label_of(sync.current),
        "updateRevision": _label_of(sync.update),
    }
    replicas = len(sync.wanted)
    # The rollout is complete, so the update becomes the current revision.
    if all(status[field] == replicas for field in ("updatedReplicas", "readyReplicas", "replicas")):
        status |= {"currentReplicas": status["updatedReplicas"], "currentRevision": status["updateRevision"]}
    updated_set = stateful_set | {"metadata": dict(stateful_set["metadata"]), "status": status}
    store.replace_record(STATEFUL_SETS, record, updated_set)
    hashes = {str(mapping_at(pod.obj, "metadata", "labels").get(HASH_LABEL)) for pod in pods}
    forget_old(store, stateful_set, hashes | {status["currentRevision"], status["updateRevision"]})


def _counts(pods: Sequence[Record], current: str, update: str) -> Json:
    live = [mapping_at(pod.obj, "metadata", "labels").get(HASH_LABEL) for pod in pods if is_active(pod.obj)]
    ready = sum(_is_healthy(pod) for pod in pods)
    return {
        "replicas": len(pods),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "currentReplicas": live.count(current),
        "updatedReplicas": live.count(update),
    }
