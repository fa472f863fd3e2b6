"""Random clusters that are almost full, by the recipe of arXiv 2511.08373 and its published generator.

Pods come in ReplicaSets of one to four replicas, which request 100m to 1000m of cpu and 100 to 1000 MB of memory, and
have one of four priorities. All nodes are alike: together they have what all pods request, divided by the usage. The
default scheduler places the pods one after the other, without preemption; a cluster counts if a pod stays pending.
Added here: some ReplicaSets have a PodDisruptionBudget.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from podium.insight import Cluster
from tests.manifests import Json, node
from tests.workload_manifests import budget, priority_class, ready, workload

NODES: Final = (4, 8, 16, 32)
PODS_PER_NODE: Final = (4, 8)
USAGES: Final = (0.90, 0.95, 1.00, 1.05)
PRIORITIES: Final = 4


@dataclass(frozen=True, slots=True)
class FullCluster:
    """A cluster with pending pods.

    Attributes:
        objects: nodes, ReplicaSets, budgets, and pods with their nodes.
        pod: the pending pod of the highest priority, the first by its name.
        apart: the ReplicaSets of which no pod may be in its zone.
    """

    objects: list[Json]
    pod: str
    apart: frozenset[str] = frozenset()


def full_cluster(
    seed: int, node_count: int, pods_per_node: int, usage: float, *, has_one_pending: bool = False
) -> FullCluster | None:
    """Build the cluster of a seed; None if all its pods find a node.

    Args:
        has_one_pending: leave all pending pods out but the one of the highest priority.
    """
    random = Random(f"{seed}/{node_count}/{pods_per_node}/{usage}")
    replica_sets, budgets, pods = _workloads(random, node_count * pods_per_node)
    cpu, memory = (int(_total(pods, name) / node_count / usage) for name in ("cpu", "memory"))
    nodes = [node(f"n{number}", f"{cpu}m", memory=f"{memory}M") for number in range(node_count)]
    classes = [priority_class(f"p{value}", value, preemptionPolicy="Never") for value in range(PRIORITIES)]
    cluster = Cluster.load([*nodes, *classes, *replica_sets, *pods])
    node_of = {placement.pod.key: placement.node for placement in cluster.place_all()}
    pending = [pod for pod in pods if node_of[key_of(pod)] is None]
    if not pending:
        return None
    subject = min(pending, key=lambda pod: (-pod["spec"]["priority"], key_of(pod)))
    if has_one_pending:
        pods = [pod for pod in pods if pod is subject or pod not in pending]
        counts = [_owner_of(pod) for pod in pods]
        for replica_set in replica_sets:
            replica_set["spec"]["replicas"] = counts.count(replica_set["metadata"]["name"])
    bound_pods = [_on_node(pod, node_of[key_of(pod)]) for pod in pods]
    return FullCluster([*nodes, *classes, *replica_sets, *budgets, *bound_pods], key_of(subject))


def _workloads(random: Random, pod_count: int) -> tuple[list[Json], list[Json], list[Json]]:
    replica_sets: list[Json] = []
    budgets: list[Json] = []
    pods: list[Json] = []
    while len(pods) < pod_count:
        replicas = min(random.randint(1, 4), pod_count - len(pods))
        name = f"rs-{len(replica_sets)}"
        requests = {"cpu": f"{random.randint(100, 1000)}m", "memory": f"{random.randint(100, 1000)}M"}
        priority = random.randrange(PRIORITIES)
        replica_set = workload("ReplicaSet", name, replicas, pod_spec={"priorityClassName": f"p{priority}"})
        replica_set["metadata"]["uid"] = name
        (container,) = replica_set["spec"]["template"]["spec"]["containers"]
        container["resources"] = {"requests": requests}
        pods += [pod_of(replica_set, number, priority) for number in range(replicas)]
        replica_sets.append(replica_set)
        if random.random() < 0.3:
            budgets.append(budget({"app": name}, name, maxUnavailable=random.choice((0, 1, 1))))
    return replica_sets, budgets, pods


def pod_of(replica_set: Json, number: int, priority: int) -> Json:
    """A pod of the ReplicaSet, without a node."""
    name, template = replica_set["metadata"]["name"], replica_set["spec"]["template"]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": True}
    metadata = {"name": f"{name}-{number}", "namespace": "default", "uid": f"{name}-{number}"}
    metadata |= {"labels": template["metadata"]["labels"], "ownerReferences": [owner]}
    spec = {"priority": priority, "preemptionPolicy": "Never"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**template["spec"], **spec}}


def _on_node(pod: Json, node_name: str | None) -> Json:
    if node_name is None:
        return pod
    return {**pod, "spec": {**pod["spec"], "nodeName": node_name}, "status": ready()}


def amount_of(pod: Json, resource: str) -> int:
    """The request of a pod: thousandths of cpu, or megabytes."""
    return int(pod["spec"]["containers"][0]["resources"]["requests"][resource][:-1])


def devices_of(pod: Json) -> int:
    """How many devices the pod claims: its templates are named after their numbers."""
    return sum(int(entry["resourceClaimTemplateName"].rpartition("-")[2]) for entry in _claims_of(pod))


def _claims_of(pod: Json) -> list[Json]:
    claims: list[Json] = pod["spec"].get("resourceClaims", [])
    return claims


def _total(pods: list[Json], resource: str) -> int:
    return sum(amount_of(pod, resource) for pod in pods)


def key_of(pod: Json) -> str:
    """The namespace and name of a pod."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _owner_of(pod: Json) -> str:
    name: str = pod["metadata"]["ownerReferences"][0]["name"]
    return name
