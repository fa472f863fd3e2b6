"""Members on which replicas can be tried out."""

from __future__ import annotations

from random import Random

from msgspec import convert

from podium.engine.store import ObjectStore
from podium.estimator.accurate import Rules
from podium.estimator.member import Gates, MemberCluster
from podium.estimator.requirements import ObjectReference
from podium.estimator.scheduler_view import SchedulerView
from podium.estimator.workloads import Deployment, Job, TemplatedReplicaSet, TemplatedStatefulSet
from podium.lib.clock import ManualClock
from podium.objects.core import Node, Pod
from podium.objects.resource_types import NODES, PODS
from tests.unit.estimator.members import refuse

KINDS = {
    "Deployment": Deployment,
    "ReplicaSet": TemplatedReplicaSet,
    "StatefulSet": TemplatedStatefulSet,
    "Job": Job,
}
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
]}}  # fmt: skip


def tried_on(*objects, **gates):
    """A member of these objects."""
    kinds = {Node: NODES, Pod: PODS}
    store = ObjectStore((kinds[type(item)], item) for item in objects if type(item) in kinds)
    view = SchedulerView(Rules(), store.lister, refuse, ManualClock(), Random(1))
    cluster = MemberCluster("member1", refuse, Gates(**gates), view)
    for item in objects:
        cluster.put(item)
    return cluster


def workload(kind="Deployment", name="web", owner=None, labels=None, resources=None, **spec):
    """A workload whose pods are to be called web."""
    owners = [{"uid": owner, "controller": True}] if owner else []
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "ownerReferences": owners}
    container = {"name": "c", "resources": resources or {"requests": {"cpu": "1"}}, "ports": spec.pop("ports", [])}
    template = {"metadata": {"labels": {"app": "web", **(labels or {})}}, "spec": {"containers": [container], **spec}}
    return convert({"metadata": metadata, "spec": {"template": template}}, KINDS[kind])


def reference(kind="Deployment", name="web"):
    """As Karmada names it."""
    return ObjectReference(kind=kind, namespace="default", name=name)


def result_of_steps(steps):
    """The value of an estimate in steps."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value
