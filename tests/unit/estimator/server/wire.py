"""Requests as Karmada's clients of three times write them: messages only, both forms, bytes only."""

from __future__ import annotations

from podium.estimator.server.messages import CLASSES

ERAS = ("legacy", "both", "bytes")


def replicas_request(cluster, requirements, era="bytes"):
    """The bytes of a question for replicas."""
    message = CLASSES["MaxAvailableReplicasRequest"](cluster=cluster)
    if requirements is not None:
        message.replicaRequirements.CopyFrom(_needs("ReplicaRequirements", requirements, era))
        message.replicaRequirements.namespace = requirements.get("namespace", "")
    return message.SerializeToString()


def sets_request(cluster, components, era="bytes"):
    """The bytes of a question for sets of components."""
    message = CLASSES["MaxAvailableComponentSetsRequest"](cluster=cluster, namespace="default")
    for component in components:
        component_message = message.components.add(name=component["name"], replicas=component["replicas"])
        if "replicaRequirements" in component:
            needs = _needs("ComponentReplicaRequirements", component["replicaRequirements"], era)
            component_message.replicaRequirements.CopyFrom(needs)
    return message.SerializeToString()


def unschedulable_request(cluster, workload, threshold_s):
    """The bytes of a question for unschedulable replicas."""
    return CLASSES["UnschedulableReplicasRequest"](
        cluster=cluster, resource=workload, unschedulableThreshold=int(threshold_s * 1e9)
    ).SerializeToString()


def _needs(kind, requirements, era):
    message = CLASSES[kind](priorityClassName=requirements.get("priorityClassName", ""))
    for name, amount in requirements.get("resourceRequest", {}).items():
        if era != "legacy":
            message.resourceRequestBytes[name] = CLASSES["Quantity"](string=amount).SerializeToString()
        if era != "bytes":
            message.resourceRequest[name].string = amount
    if "nodeClaim" in requirements:
        message.nodeClaim.CopyFrom(_claim(requirements["nodeClaim"], era))
    return message


def _claim(claim, era):
    message = CLASSES["NodeClaim"](nodeSelector=claim.get("nodeSelector", {}))
    if "hardNodeAffinity" in claim:
        affinity = CLASSES["NodeSelector"](**claim["hardNodeAffinity"])
        if era != "legacy":
            message.nodeAffinityBytes = affinity.SerializeToString()
        if era != "bytes":
            message.nodeAffinity.CopyFrom(affinity)
    for toleration in claim.get("tolerations", ()):
        toleration_message = CLASSES["Toleration"](**toleration)
        if era != "legacy":
            message.tolerationsBytes.append(toleration_message.SerializeToString())
        if era != "bytes":
            message.tolerations.add().CopyFrom(toleration_message)
    return message
