"""Members and questions in few words."""

from __future__ import annotations

from podium.estimator.cluster_objects import Cluster
from podium.estimator.member import Gates, MemberCluster
from podium.estimator.requirements import (
    AssumedWorkload,
    Component,
    ComponentReplicaRequirements,
    NodeClaim,
    ReplicaRequirements,
)


def refuse(item, error):
    raise AssertionError(f"{item.key}: {error}")


def member(*objects, **gates):
    """A member cluster of these objects."""
    cluster = MemberCluster("member1", refuse, Gates(**gates))
    for item in objects:
        cluster.put(item)
    return cluster


def amounts(cpu=None, memory=None, **fields):
    amounts_by_name = {"cpu": cpu, "memory": memory, "example.com/gpu": fields.pop("gpu", None)}
    return {name: amount for name, amount in {**amounts_by_name, **fields}.items() if amount is not None}


def asking(cpu=None, memory=None, *, claim=None, namespace="", priority_class="", **fields):
    """What a replica needs."""
    return ReplicaRequirements(
        resource_request=amounts(cpu, memory, **fields),
        node_claim=claim,
        namespace=namespace,
        priority_class_name=priority_class,
    )


def part(replicas, cpu=None, memory=None, *, claim=None, priority_class="", **fields):
    """A component of a set."""
    requirements = ComponentReplicaRequirements(
        resource_request=amounts(cpu, memory, **fields), node_claim=claim, priority_class_name=priority_class
    )
    return Component(name="part", replicas=replicas, replica_requirements=requirements)


def assumptions(*components, namespace="default"):
    """A workload on its way."""
    return AssumedWorkload(namespace=namespace, components=components)


def claim(**fields):
    return NodeClaim(**fields)


def cluster(models=(), counts=(), **summary):
    """Karmada's Cluster: models as lists of (name, min), one for each grade, and how many nodes are of each."""
    from msgspec import convert

    return convert(
        {
            "spec": {
                "resourceModels": [
                    {"grade": grade, "ranges": [{"name": name, "min": low, "max": "0"} for name, low in model.items()]}
                    for grade, model in enumerate(models)
                ]
            },
            "status": {
                "resourceSummary": {
                    "allocatable": {"pods": "1000"},
                    "allocatableModelings": [{"grade": grade, "count": count} for grade, count in enumerate(counts)],
                    **summary,
                }
            },
        },
        Cluster,
    )
