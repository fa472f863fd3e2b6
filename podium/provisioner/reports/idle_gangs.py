"""Gangs that a plan by Karpenter's rules buys nodes for although they do not start: Karpenter knows no pod groups.

Owns the warnings about them. The plan stays Karpenter's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from podium.engine.errors import ManifestError
from podium.engine.gangs import GROUPS, Gang, gangs_of
from podium.engine.manifests import Manifest, read_manifest, resource_of
from podium.engine.store import ObjectStore
from podium.objects.core import Pod
from podium.provisioner.provisioning.plan import NodePlan, Plan


def groups_in(manifests: Iterable[Manifest]) -> ObjectStore:
    """Return the PodGroups among the manifests; one that cannot be read is left out."""
    groups = ObjectStore(())
    for manifest in manifests:
        resource = resource_of(manifest)
        if resource in GROUPS:
            try:
                groups.put(resource, read_manifest(manifest, resource))
            except ManifestError:
                # One broken object must not keep all others from being planned.
                continue
    return groups


def idle_gang_warnings(plan: Plan, pods: Iterable[Pod], groups: ObjectStore) -> Iterator[str]:
    """Yield a sentence for each gang that the plan buys nodes for, and that does not start with them.

    Args:
        pods: all pods of the cluster.
        groups: the PodGroups.
    """
    places = {pod.key for node in plan.nodes for pod in node.pods}
    places |= {pod.key for pods_there in plan.existing.values() for pod in pods_there}
    counts = [(gang, _placed_count(gang, places)) for gang in gangs_of(groups, pods)]
    stuck_gangs = [(gang, count) for gang, count in counts if gang.problem or count < gang.min_count]
    stuck_keys = {pod.key for gang, _ in stuck_gangs for pod in gang.members}
    for gang, count in stuck_gangs:
        member_keys = {pod.key for pod in gang.members}
        nodes = [node for node in plan.nodes if any(pod.key in member_keys for pod in node.pods)]
        # A gang for which nothing is bought costs nothing: that it waits is no news.
        if not nodes:
            continue
        cause = gang.problem or f"it needs {gang.min_count} of its pods to have a node, and {count} have one"
        idle_nodes = [node for node in nodes if all(pod.key in stuck_keys for pod in node.pods)]
        effect = f", so these new nodes will be idle: {_names(idle_nodes)}" if idle_nodes else ""
        yield f"the gang {gang.key} ({gang.api}) does not start: {cause}{effect} (--rules podium buys none for it)"


def _placed_count(gang: Gang, places: set[str]) -> int:
    return sum(1 for pod in gang.members if pod.node_name or pod.key in places)


def _names(nodes: Iterable[NodePlan]) -> str:
    counts = Counter((node.instance_types[0].name, node.pool) for node in nodes)
    return ", ".join(f"{count} {name} of NodePool {pool}" for (name, pool), count in counts.items())
