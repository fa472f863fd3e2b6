"""The pods of a DaemonSet: one on each of its nodes, also on those that are added later.

Source: kubernetes pkg/controller/daemon (v1.36).
Differs: a DaemonSet with maxSurge is updated as one without; a ready pod is available at once, whatever
minReadySeconds says; pods of deleted nodes are deleted here, which upstream's garbage collector of pods does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.sandbox.controllers.daemon_nodes import daemon_spec, for_node, may_stay, should_run, target_node
from podium.sandbox.controllers.pods import FINISHED, PODS, create_pod, is_ready, phase_of
from podium.sandbox.controllers.revisions import HASH_LABEL, forget_old, newest_revision
from podium.sandbox.controllers.rollout import share
from podium.sandbox.errors import ApiError
from podium.sandbox.fields import mapping_at
from podium.sandbox.journal import MODIFIED, Change, Record
from podium.sandbox.resources import resource_named
from podium.sandbox.store import Store

Json = dict[str, Any]

DAEMON_SETS = resource_named("daemonsets")
NODES = resource_named("nodes")
_GENERATION = "pod-template-generation"


def concerns_daemons(change: Change) -> bool:
    """Return whether a change of a node may change which daemons run on it: heartbeats do not."""
    if change.previous is None or change.type != MODIFIED:
        return True
    return _selected_by(change.previous.obj) != _selected_by(change.record.obj)


def _selected_by(node: Json) -> tuple[Any, Any]:
    return node["metadata"].get("labels"), mapping_at(node, "spec").get("taints")


def reconcile(store: Store, record: Record, pods: list[Record]) -> bool:
    """Create, delete or replace pods, and write the status. Returns whether to retry without a further change."""
    daemon_set = record.obj
    try:
        revision = newest_revision(store, daemon_set)
    except ApiError:
        return True
    digest = str(revision["metadata"]["labels"][HASH_LABEL])
    template = daemon_set["spec"]["template"]
    spec = daemon_spec(mapping_at(template, "spec"))
    nodes = {key[1]: node.obj for key, node in sorted(store.collection(NODES).records.items())}
    node_names = [name for name, node in nodes.items() if should_run(spec, node)]
    pods_by_node = _pods_to_keep(store, pods, {name for name, node in nodes.items() if may_stay(spec, node)})
    busy = {target_node(pod.obj) for pod in pods if pod.key in store.collection(PODS).records}
    labels = {HASH_LABEL: digest, _GENERATION: str(daemon_set["metadata"].get("generation", 1))}
    is_refused = False
    try:
        for name in node_names:
            if name not in busy:
                create_pod(store, daemon_set, template=template | {"spec": for_node(spec, name)}, labels=labels)
    except ApiError:
        is_refused = True
    if not is_refused and busy.issuperset(node_names):
        _replace_outdated(store, daemon_set, pods_by_node, digest, len(node_names))
    _write_status(store, record, node_names, digest)
    forget_old(store, daemon_set, {digest})
    return is_refused


def _pods_to_keep(store: Store, pods: list[Record], node_names: set[str]) -> dict[str, Record]:
    """Delete pods that ended, may not stay, or are not the oldest of a node; return the others by node."""
    pods_by_node: dict[str, Record] = {}
    for pod in sorted(pods, key=lambda candidate: (not candidate.obj["spec"].get("nodeName"), candidate.revision)):
        node = target_node(pod.obj)
        if "deletionTimestamp" in pod.obj["metadata"]:
            continue
        if node not in node_names or node in pods_by_node or phase_of(pod.obj) in FINISHED:
            store.delete_record(PODS, pod, {} if node in node_names else {"gracePeriodSeconds": 0})
        else:
            pods_by_node[node] = pod
    return pods_by_node


def _replace_outdated(store: Store, daemon_set: Json, pods: Mapping[str, Record], digest: str, count: int) -> None:
    """Delete pods of older templates: the unready ones, and of the others as many as may be unavailable."""
    strategy = mapping_at(daemon_set, "spec", "updateStrategy")
    if strategy.get("type") == "OnDelete":
        return
    unavailable_max = max(share(mapping_at(strategy, "rollingUpdate").get("maxUnavailable", 1), count, up=True), 1)
    old = [pod for pod in pods.values() if not _is_new(pod, digest)]
    unready = [pod for pod in old if not is_ready(pod.obj)]
    unready_new = sum(not is_ready(pod.obj) for pod in pods.values() if _is_new(pod, digest))
    missing = max(0, count - len(pods))
    ready = [pod for pod in old if is_ready(pod.obj)]
    spare = max(0, unavailable_max - unready_new - len(unready) - missing)
    for pod in [*unready, *ready[:spare]]:
        store.delete_record(PODS, pod, {})


def _is_new(pod: Record, digest: str) -> bool:
    return bool(mapping_at(pod.obj, "metadata", "labels").get(HASH_LABEL) == digest)


def _write_status(store: Store, record: Record, node_names: list[str], digest: str) -> None:
    daemon_set = record.obj
    uid = daemon_set["metadata"]["uid"]
    by_node = {
        target_node(pod.obj): pod
        for key, pod in store.collection(PODS).records.items()
        if key[0] == record.key[0]
        and "deletionTimestamp" not in pod.obj["metadata"]
        and any(owner.get("uid") == uid for owner in pod.obj["metadata"].get("ownerReferences") or ())
    }
    running = [by_node[node] for node in node_names if node in by_node]
    ready = sum(is_ready(pod.obj) for pod in running)
    status = {
        "currentNumberScheduled": len(running),
        "desiredNumberScheduled": len(node_names),
        "numberMisscheduled": len(by_node) - len(running),
        "numberReady": ready,
        "numberAvailable": ready,
        "numberUnavailable": len(node_names) - ready,
        "updatedNumberScheduled": sum(_is_new(pod, digest) for pod in running),
        "observedGeneration": daemon_set["metadata"].get("generation", 1),
    }
    updated_set = daemon_set | {"metadata": dict(daemon_set["metadata"]), "status": status}
    store.replace_record(DAEMON_SETS, record, updated_set)
