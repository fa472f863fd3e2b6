"""Clusters for the tests of planning, as the API gives their objects, and the plans made for them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from podium.engine.files import LocatedManifest
from podium.objects.core import Pod
from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.cloudprovider.catalogue import Catalogue, read_catalogue
from podium.provisioner.provisioning.provisioner import plan_provisioning
from podium.provisioner.state.manifests import read_cluster
from podium.provisioner.state.reading import read_objects
from podium.provisioner.state.settings import Settings

NOW = 1_780_000_000.0
ZONES = ("zone-1", "zone-2", "zone-3")
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
RESERVATION = "karpenter.kwok.sh/reservation-id"

Document = dict[str, Any]
_uids = itertools.count()


def requirement(key: str, operator: str, *values: str, **fields: Any) -> Document:
    """One requirement on a label."""
    return {"key": key, "operator": operator, "values": list(values), **fields}


def instance_type(
    name: str,
    cpu: int,
    memory: str,
    pods: int = 5,
    *,
    price: float | None = None,
    arch: str = "amd64",
    zones: Sequence[str] = ZONES,
    reserved: Mapping[str, int] | None = None,
) -> Document:
    """An instance type on demand in all zones, and spot in the first two; `reserved` are places by reservation."""
    price = 0.1 * cpu if price is None else price
    rates = [("on-demand", zone, price) for zone in zones] + [("spot", zone, price * 0.7) for zone in zones[:2]]
    offerings = [
        {
            "price": cost,
            "requirements": [
                requirement(CAPACITY_TYPE, "In", kind),
                requirement(ZONE, "In", zone),
                requirement(RESERVATION, "DoesNotExist"),
            ],
        }
        for kind, zone, cost in rates
    ]
    for reservation, places in (reserved or {}).items():
        labels = [
            requirement(CAPACITY_TYPE, "In", "reserved"),
            requirement(ZONE, "In", zones[0]),
            requirement(RESERVATION, "In", reservation),
        ]
        offerings.append({"price": 0.001, "requirements": labels, "reservationCapacity": places})
    return {
        "name": name,
        "architecture": arch,
        "operatingSystems": ["linux"],
        "resources": {"cpu": str(cpu), "memory": memory, "pods": str(pods), "ephemeral-storage": "20Gi"},
        "offerings": offerings,
    }


def read_with_groups(documents: Iterable[Document]) -> ClusterObjects:
    """The objects that planning reads, and the PodGroups among them."""
    documents = list(documents)
    groups = [document for document in documents if document["kind"] == "PodGroup"]
    objects = read_objects([document for document in documents if document["kind"] != "PodGroup"])
    return replace(objects, others=read_cluster([LocatedManifest(group, "group") for group in groups]).others)


TYPES = (
    instance_type("small", 2, "2Gi"),
    instance_type("default", 4, "4Gi"),
    instance_type("arm", 16, "128Gi", arch="arm64"),
)


def catalogue(*types: Document) -> Catalogue:
    """A catalogue of these instance types, or of `TYPES`."""
    return read_catalogue(list(types or TYPES))


def node_pool(
    name: str = "pool",
    *,
    requirements: Iterable[Document] = (),
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Document] = (),
    limits: Mapping[str, str] | None = None,
    weight: int | None = None,
    ready: bool = True,
    **spec: Any,
) -> Document:
    """A NodePool of the kwok provider."""
    states = {"ValidationSucceeded": "True", "NodeClassReady": "True", "Ready": str(ready)}
    template = {
        "metadata": {"labels": dict(labels or {})},
        "spec": {
            "requirements": list(requirements),
            "taints": list(taints),
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        },
    }
    optional = {"limits": limits, "weight": weight}
    return {
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "template": template,
            **{key: value for key, value in optional.items() if value is not None},
            **spec,
        },
        "status": {"conditions": [{"type": key, "status": value} for key, value in states.items()]},
    }


def pod(
    name: str,
    *,
    cpu: str = "1",
    memory: str = "100Mi",
    labels: Mapping[str, str] | None = None,
    node: str = "",
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    ports: Iterable[int] = (),
    **spec: Any,
) -> Document:
    """A pod that kube-scheduler found no node for; with a node, one that runs there."""
    container = {
        "name": "main",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
        "ports": [{"containerPort": port, "hostPort": port, "protocol": "TCP"} for port in ports],
    }
    waiting = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "Unschedulable"}]}
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"{next(_uids):06d}",
            "labels": dict(labels or {}),
            **(metadata or {}),
        },
        "spec": {"containers": [container], "nodeName": node, **spec},
        "status": dict(status or ({"phase": "Running"} if node else waiting)),
    }


def node(name: str = "node-1", *, cpu: str = "4", taints: Iterable[Document] = (), **labels: str) -> Document:
    """A node that Karpenter does not manage. `zone` stands for the zone's label."""
    node_labels = {HOSTNAME: name, **{ZONE if key == "zone" else key: value for key, value in labels.items()}}
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": node_labels},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def node_claim(name: str = "claim-1", *, machine: str = "machine-1", cpu: str = "4", **metadata: Any) -> Document:
    """A NodeClaim of the pool `pool` that was launched."""
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {
        "kind": "NodeClaim",
        "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": "pool", ZONE: "zone-1"}, **metadata},
        "spec": {},
        "status": {"providerID": machine, "allocatable": amounts, "capacity": amounts},
    }


def managed_node(
    name: str = "node-1", *, machine: str = "machine-1", initialized: bool = True, **fields: Any
) -> Document:
    """The Node of a NodeClaim of the pool `pool`."""
    document = node(name, **fields)
    document["metadata"]["labels"].update(
        {
            "karpenter.sh/nodepool": "pool",
            "karpenter.sh/registered": "true",
            "karpenter.sh/initialized": str(initialized).lower(),
            "node.kubernetes.io/instance-type": "default",
        }
    )
    document["spec"]["providerID"] = machine
    return document


def daemon_set(name: str = "agent", **template: Any) -> Document:
    """A DaemonSet whose pods are like `pod`."""
    daemon_pod = pod(name, **template)
    return {
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system", "uid": f"uid-{name}"},
        "spec": {"template": {"metadata": {}, "spec": daemon_pod["spec"]}},
    }


def owned_by(kind: str, name: str, api_version: str = "apps/v1") -> Document:
    """The metadata of a pod with this controller."""
    owner = {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
    return {"ownerReferences": [owner]}


def spread(key: str = ZONE, *, skew: int = 1, when: str = "DoNotSchedule", app: str = "web", **fields: Any) -> Document:
    """A topology spread constraint over the pods of an app."""
    selector = {"matchLabels": {"app": app}}
    return {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": when, "labelSelector": selector, **fields}


def pod_affinity(app: str, key: str = ZONE, *, anti: bool = False) -> Document:
    """An affinity that requires to be with, or apart from, the pods of an app."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity" if anti else "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def node_affinity(*alternatives: Document, preferences: Iterable[tuple[int, Document]] = ()) -> Document:
    """An affinity for nodes; each alternative and preference is one expression."""
    affinity: Document = {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": weight, "preference": {"matchExpressions": [requirement]}} for weight, requirement in preferences
        ]
    }
    if alternatives:
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [{"matchExpressions": [alternative]} for alternative in alternatives]
        }
    return {"nodeAffinity": affinity}


def plan(*objects: Document, types: Sequence[Document] = TYPES, **settings: Any) -> Document:
    """The plan for a cluster of these objects, with one NodePool if none is among them."""
    if not any(manifest["kind"] == "NodePool" for manifest in objects):
        objects = (*objects, node_pool())
    return plan_provisioning(read_objects(objects), catalogue(*types), Settings(**settings), NOW)


def as_pod(document: Document) -> Pod:
    """The pod of a document."""
    return msgspec.convert(document, Pod)
