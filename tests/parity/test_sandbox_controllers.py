"""The sandbox's controllers do what podium predicts of kube-controller-manager, in random states of workloads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Any

import msgspec
import pytest

from podium.engine.derivation.controllers import (
    Sync,
    SyncContext,
    sync_daemon_set,
    sync_job,
    sync_replica_set,
    sync_stateful_set,
)
from podium.objects.core import Node, Pod
from podium.sandbox.controllers import daemon_sets, jobs, replica_sets, stateful_sets
from podium.sandbox.controllers.daemon_nodes import target_node
from podium.sandbox.controllers.job_failures import JobBackoffs
from podium.sandbox.controllers.ownership import owner_reference
from podium.sandbox.journal import Record
from podium.sandbox.resources import resource_named
from podium.sandbox.store import Store

Json = dict[str, Any]

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SEEDS = range(60)
NODES = ("n1", "n2", "n3", "n4")
_INDEX = "batch.kubernetes.io/job-completion-index"
_PODS = resource_named("pods")


class Bench:
    """One workload with random pods, in a store and as podium's objects."""

    def __init__(self, seed: int, kind: str, spec: Json) -> None:
        self.random = Random(seed)
        self.store = Store(now=lambda: NOW, new_uid=lambda: f"uid-{self.random.randrange(10**9):09}")
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        version = "batch/v1" if kind == "Job" else "apps/v1"
        selector = {"selector": {"matchLabels": {"app": "web"}}}
        workload = {"apiVersion": version, "kind": kind, "metadata": {"name": "web", "namespace": "default"}}
        template_fields = {"template": template | spec.pop("template", {})}
        self.workload = self.store.put_raw(workload | {"spec": selector | template_fields | spec})

    def add_pod(self, name: str, *, labels: Json | None = None, annotations: Json | None = None, **spec: Any) -> Json:
        """A pod of the workload in a random state: pending, bound, ready, of some age."""
        draw = self.random
        creation_time, since = (NOW - timedelta(seconds=draw.choice((5, 6, 40, 90, 3000, 3100))) for _ in range(2))
        node = draw.choice(("", *NODES))
        is_ready, phase = draw.random() < 0.6, draw.choice(("Pending", "Running", "Running")) if node else "Pending"
        condition = {"type": "Ready", "status": str(is_ready), "lastTransitionTime": _text(since)}
        metadata = {
            "name": name,
            "labels": {"app": "web"} | (labels or {}),
            "annotations": annotations or {},
            "creationTimestamp": _text(creation_time),
            "ownerReferences": [owner_reference(self.workload)],
        }
        status = {"phase": phase, "conditions": [condition] if node else []}
        where = {"nodeName": node} if node else {}
        containers = {"containers": [{"name": "c", "image": "i"}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": containers | where | spec}
        return self.store.put_raw(pod | {"status": status})

    def pods(self) -> list[Json]:
        return self.store.list("pods")

    def typed_pods(self) -> list[Pod]:
        return [msgspec.json.decode(json.dumps(pod), type=Pod, strict=False) for pod in self.pods()]

    def changes(self, reconcile: Callable[[Store, Record, list[Record]], bool]) -> tuple[list[Json], set[str]]:
        """One sync of the sandbox's controller: the pods that it creates, and the names of those that it deletes."""
        pods_before = {pod["metadata"]["name"] for pod in self.pods()}
        resource = resource_named(self.workload["kind"])
        record = self.store.record(resource, "default", "web")
        reconcile(self.store, record, list(self.store.collection(_PODS).records.values()))
        pods_after = {pod["metadata"]["name"]: pod for pod in self.pods()}
        names_gone = {
            name
            for name in pods_before
            if name not in pods_after or "deletionTimestamp" in pods_after[name]["metadata"]
        }
        return [pod for name, pod in pods_after.items() if name not in pods_before], names_gone


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _context() -> SyncContext:
    return SyncContext(NOW.timestamp(), lambda pod: (0, 0), 0)


def _names_deleted(sync: Sync) -> set[str]:
    return {pod.metadata.name for pod in sync.delete}


def _names(pods: Iterable[Json]) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in pods)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_replica_set_deletes_the_same_pods(seed):
    draw = Random(seed)
    bench = Bench(seed, "ReplicaSet", {"replicas": draw.randrange(6)})
    for number in range(8):
        cost = {"controller.kubernetes.io/pod-deletion-cost": str(draw.choice((-1, 5)))} if draw.random() < 0.3 else {}
        bench.add_pod(f"web-{number}", annotations=cost)
    siblings: list[Pod] = []
    if draw.random() < 0.5:
        deployment = {"kind": "Deployment", "apiVersion": "apps/v1", "name": "web", "uid": "d", "controller": True}
        metadata = bench.workload["metadata"] | {"ownerReferences": [deployment]}
        bench.workload = bench.store.put_raw(bench.workload | {"metadata": metadata})
        siblings = bench.typed_pods()
    predicted = sync_replica_set(bench.workload, bench.typed_pods(), siblings, _context())
    pods_created, names_gone = bench.changes(replica_sets.reconcile)
    assert (pods_created, names_gone) == ([], _names_deleted(predicted))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stateful_set_does_the_same_next(seed):
    draw = Random(seed)
    policy = draw.choice(("OrderedReady", "Parallel"))
    spec = {
        "replicas": draw.randrange(5),
        "podManagementPolicy": policy,
        "ordinals": {"start": draw.choice((0, 0, 2))},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": draw.choice((0, 0, 1))}},
    }
    bench = Bench(seed, "StatefulSet", spec)
    revision = stateful_sets.newest_revision(bench.store, bench.workload)["metadata"]["name"]
    outdated = set()
    for ordinal in range(6):
        if draw.random() < (0.9 if policy == "OrderedReady" else 0.7):
            is_old = draw.random() < 0.3
            bench.add_pod(f"web-{ordinal}", labels={"controller-revision-hash": "old" if is_old else revision})
            outdated |= {f"default/web-{ordinal}"} if is_old else set()
    for pod in bench.pods():
        if draw.random() < 0.6:
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": _text(NOW)}
            status = {"phase": "Running", "conditions": [ready]}
            bench.store.put_raw(pod | {"spec": pod["spec"] | {"nodeName": "n1"}, "status": status})
        elif pod["spec"].get("nodeName"):
            # podium takes a bound pod that is not pending for running.
            bench.store.put_raw(pod | {"status": pod["status"] | {"phase": "Running"}})
    predicted = sync_stateful_set(bench.workload, bench.typed_pods(), outdated)
    pods_created, names_gone = bench.changes(stateful_sets.reconcile)
    assert _names(pods_created) == _names(predicted.create)
    if policy == "Parallel":
        # Upstream creates, deletes and replaces in one sync, podium in several.
        assert names_gone >= _names_deleted(predicted)
    else:
        assert names_gone == _names_deleted(predicted)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_daemon_set_is_on_the_same_nodes(seed):
    draw = Random(seed)
    pod_spec: Json = {"containers": [{"name": "c", "image": "i"}]}
    if draw.random() < 0.4:
        pod_spec["nodeSelector"] = {"disk": "ssd"}
    if draw.random() < 0.4:
        operator = draw.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
        values = {"Gt": ["4"], "Lt": ["4"]}.get(operator, ["4", "a"] if operator.endswith("In") else [])
        expression = {"key": "size", "operator": operator, "values": values}
        terms = [{"matchExpressions": [expression]}]
        affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        pod_spec["affinity"] = {"nodeAffinity": affinity}
    if draw.random() < 0.4:
        pod_spec["tolerations"] = [{"key": "dedicated", "operator": "Equal", "value": "a", "effect": "NoSchedule"}]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec}
    bench = Bench(seed, "DaemonSet", {"template": template})
    digest = daemon_sets.newest_revision(bench.store, bench.workload)["metadata"]["labels"]["controller-revision-hash"]
    for name in NODES:
        bench.store.put_raw(_node(draw, name))
        if draw.random() < 0.4:
            pod = bench.add_pod(f"web-{name}", labels={"controller-revision-hash": digest}, nodeName=name)
            assert pod["spec"]["nodeName"] == name
    nodes = [msgspec.json.decode(json.dumps(node), type=Node, strict=False) for node in bench.store.list("nodes")]
    predicted_sync = sync_daemon_set(bench.workload, bench.typed_pods(), nodes, set(), _context())
    pods_created, names_gone = bench.changes(daemon_sets.reconcile)
    assert sorted(map(target_node, pods_created)) == sorted(map(target_node, predicted_sync.create))
    assert names_gone == _names_deleted(predicted_sync)
    for pod, predicted in zip(
        sorted(pods_created, key=target_node), sorted(predicted_sync.create, key=target_node), strict=True
    ):
        tolerations = [toleration for toleration in pod["spec"]["tolerations"] if "tolerationSeconds" not in toleration]
        assert tolerations == predicted["spec"]["tolerations"]
        assert pod["spec"]["affinity"] == predicted["spec"]["affinity"]


def _node(draw: Random, name: str) -> Json:
    labels = {key: value for key, value in (("disk", "ssd"), ("size", draw.choice("3459a"))) if draw.random() < 0.7}
    taints = (
        {"key": "dedicated", "value": draw.choice("ab"), "effect": draw.choice(("NoSchedule", "NoExecute"))},
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        {"key": "soft", "effect": "PreferNoSchedule"},
    )
    spec = {"taints": [taint for taint in taints if draw.random() < 0.3]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_job_creates_and_deletes_the_same_pods(seed):
    draw = Random(seed)
    mode = draw.choice(("Indexed", "NonIndexed"))
    spec = {
        "completions": draw.randrange(1, 9),
        "parallelism": draw.randrange(7),
        "completionMode": mode,
        "suspend": draw.random() < 0.2,
    }
    bench = Bench(seed, "Job", spec)
    if mode == "Indexed" and draw.random() < 0.5:
        bench.workload |= {"status": {"completedIndexes": "0", "succeeded": 1}}
        bench.store.put_raw(bench.workload)
    for index in range(1, spec["completions"]):
        if draw.random() < 0.4:
            bench.add_pod(f"web-{index}", annotations={_INDEX: str(index)} if mode == "Indexed" else {})
    predicted = sync_job(bench.workload, bench.typed_pods(), _context())
    pods_created, names_gone = bench.changes(partial(jobs.reconcile, backoffs=JobBackoffs()))
    assert sorted(map(_index, pods_created)) == sorted(map(_index, predicted.create))
    assert names_gone == _names_deleted(predicted)


def _index(pod: Json) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(_INDEX, ""))
