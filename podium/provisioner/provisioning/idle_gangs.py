"""Gangs that a plan by Karpenter's rules buys nodes for although they do not start: Karpenter knows no pod groups.

Owns the warnings about them. The plan stays Karpenter's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from podium.engine.gangs import Gang
from podium.provisioner.provisioning.launching import with_candidates
from podium.provisioner.provisioning.plan import NodePlan, Plan
from podium.provisioner.provisioning.plan_basis import PlanBasis


def idle_gang_warnings(basis: PlanBasis, plan: Plan) -> Iterator[str]:
    """Yield a sentence for each gang that the plan buys nodes for, and that does not start with them.

    A group whose members must lie in one topology domain has only those of them that the plan puts into one.
    """
    gangs = basis.gangs
    if not gangs:
        return
    places = {pod.key: node.name for node in plan.nodes for pod in node.pods}
    places |= {pod.key: name for name, pods in plan.existing.items() for pod in pods}
    labels = _labels_of_nodes(basis, plan) if any(gang.topology_key for gang in gangs) else {}
    stuck_keys: set[str] = set()
    stuck_gangs: list[tuple[Gang, str]] = []
    for gang in gangs:
        keys = _keys_in_one_domain(gang, places, labels)
        if cause := gang.problem or _cause(gang, keys, places):
            # Of a group of the basic policy those in the domain start.
            stuck_keys |= {pod.key for pod in gang.members if gang.min_count or pod.key not in keys}
            stuck_gangs.append((gang, cause))
    for gang, cause in stuck_gangs:
        member_keys = {pod.key for pod in gang.members}
        nodes = [node for node in plan.nodes if any(pod.key in member_keys for pod in node.pods)]
        # A gang for which nothing is bought costs nothing: that it waits is no news.
        if not nodes:
            continue
        idle_nodes = [node for node in nodes if all(pod.key in stuck_keys for pod in node.pods)]
        effect = f", so these new nodes will be idle: {_names(idle_nodes)}" if idle_nodes else ""
        name = f"{gang.key} ({gang.api})"
        if gang.min_count:
            yield f"the gang {name} does not start: {cause}{effect} (--rules podium buys none for it)"
        else:
            yield f"the group {name} does not start as a whole: {cause}{effect} (--rules podium keeps it together)"


def _keys_in_one_domain(gang: Gang, places: Mapping[str, str], labels: Mapping[str, Mapping[str, str]]) -> set[str]:
    """Return the members that have a node; under a topology constraint those in the domain that has most of them.

    Args:
        places: by pod that the plan places, its node.
        labels: those of each node.
    """
    nodes = {pod.key: pod.node_name or places.get(pod.key, "") for pod in gang.members}
    placed_nodes = {key: name for key, name in nodes.items() if name}
    if gang.topology_key is None:
        return set(placed_nodes)
    domains = {key: labels.get(name, {}).get(gang.topology_key, "") for key, name in placed_nodes.items()}
    # Members that run tie the others to their domain.
    running = Counter(domains[pod.key] for pod in gang.placed_members)
    best = (running or Counter(domains.values())).most_common(1)
    return {key for key, domain in domains.items() if best and domain and domain == best[0][0]}


def _cause(gang: Gang, keys: set[str], places: Mapping[str, str]) -> str:
    """Return why the gang does not start as planned; empty if it does."""
    text = f"it needs {gang.min_count} of its pods to have a node, and {len(keys)} have one"
    if gang.topology_key is None:
        return text if len(keys) < gang.min_count else ""
    in_domain = f"with one value of {gang.topology_key}"
    if not gang.min_count:
        count = sum(pod.key in places and pod.key not in keys for pod in gang.members)
        return f"its pods must have nodes {in_domain}, and {count} of them have others" if count else ""
    text = f"it needs {gang.min_count} of its pods to have nodes {in_domain}, and {len(keys)} have such nodes"
    return text if len(keys) < gang.min_count else ""


def _labels_of_nodes(basis: PlanBasis, plan: Plan) -> dict[str, Mapping[str, str]]:
    """Return the labels by node, of the nodes to buy too."""
    labels = {state.name: state.labels for state in basis.nodes}
    labels |= {state.node.metadata.name: state.labels for state in basis.nodes if state.node is not None}
    # As the cheapest of their types, in its cheapest zone.
    return labels | {node.name: node.node.labels(node.name) for node in with_candidates(basis, plan.nodes)}


def _names(nodes: Iterable[NodePlan]) -> str:
    counts = Counter((node.instance_types[0].name, node.pool) for node in nodes)
    return ", ".join(f"{count} {name} of NodePool {pool}" for (name, pool), count in counts.items())
