"""Topology spreading and pod affinity the slow way: every pod on every node looked at, rule by rule.

Written from the rules, sharing nothing with the plugins but the compiled selectors.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from podium.cluster import Snapshot
from podium.objects.affinity import PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from podium.objects.core import Node, Pod, TopologySpreadConstraint
from podium.objects.meta import LabelSelector
from podium.objects.selectors import compile_node_selector, compile_selector
from podium.objects.tolerations import is_tolerated

HOSTNAME = "kubernetes.io/hostname"
UNRESOLVABLE, UNSCHEDULABLE = "UnschedulableAndUnresolvable", "Unschedulable"
Rejections = dict[str, tuple[str, str]]
PodsByNode = list[tuple[Node, list[Pod]]]
NamespaceLabels = Mapping[str, Mapping[str, str]]


def pods_by_node(snapshot: Snapshot) -> PodsByNode:
    return [(snapshot.node(row).node, list(snapshot.pods[row].values())) for row in snapshot.order]


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    return compile_selector(selector).matches(labels)


# ---------------------------------------------------------------- spreading


class Constraint:
    def __init__(self, constraint: TopologySpreadConstraint, pod: Pod) -> None:
        self.key = constraint.topology_key
        self.max_skew = constraint.max_skew
        self.min_domains = constraint.min_domains or 1
        self._policies = (constraint.node_affinity_policy or "Honor", constraint.node_taints_policy or "Ignore")
        self._pod = pod
        self._selector = constraint.label_selector
        labels = pod.metadata.labels
        self._pinned = {key: labels[key] for key in constraint.match_label_keys if key in labels}

    def selects(self, labels: Mapping[str, str]) -> bool:
        return selects(self._selector, labels) and self._pinned.items() <= labels.items()

    def count(self, pods: Iterable[Pod]) -> int:
        selector = self._selector
        if selector is not None and not (selector.match_labels or selector.match_expressions or self._pinned):
            return 0
        return sum(
            pod.metadata.namespace == self._pod.metadata.namespace
            and pod.metadata.deletion_timestamp is None
            and self.selects(pod.metadata.labels)
            for pod in pods
        )

    def includes(self, node: Node) -> bool:
        spec = self._pod.spec
        labels = node.metadata.labels
        if self._policies[0] == "Honor":
            if not spec.node_selector.items() <= labels.items():
                return False
            rules = spec.affinity.node_affinity if spec.affinity else None
            if rules and rules.required and not compile_node_selector(rules.required).matches(labels, node.name):
                return False
        hard = [taint for taint in node.spec.taints if taint.effect in ("NoSchedule", "NoExecute")]
        return self._policies[1] != "Honor" or all(is_tolerated(spec.tolerations, taint) for taint in hard)


def constraints_of(pod: Pod, action: str) -> list[Constraint]:
    constraints = pod.spec.topology_spread_constraints
    return [Constraint(constraint, pod) for constraint in constraints if constraint.when_unsatisfiable == action]


def spread_rejections(pod: Pod, cluster: PodsByNode) -> Rejections:
    constraints = constraints_of(pod, "DoNotSchedule")
    domains: list[Counter[str]] = [Counter() for _ in constraints]
    for node, pods in cluster:
        labels = node.metadata.labels
        if all(constraint.key in labels for constraint in constraints):
            for constraint, counts in zip(constraints, domains, strict=True):
                if constraint.includes(node):
                    counts[labels[constraint.key]] += constraint.count(pods)
    reason = "node(s) didn't match pod topology spread constraints"
    rejections: Rejections = {}
    for node, _ in cluster:
        for constraint, counts in zip(constraints, domains, strict=True):
            if constraint.key not in node.metadata.labels:
                rejections[node.name] = UNRESOLVABLE, f"{reason} (missing required label)"
                break
            least = min(counts.values(), default=2**31 - 1) if len(counts) >= constraint.min_domains else 0
            own = constraint.selects(pod.metadata.labels)
            if counts[node.metadata.labels[constraint.key]] + own - least > constraint.max_skew:
                rejections[node.name] = UNSCHEDULABLE, reason
                break
    return rejections


def spread_scores(
    constraints: list[Constraint], cluster: PodsByNode, feasible: list[str], *, requires_all: bool
) -> dict[str, int]:
    def lacks_one(node: Node) -> bool:
        return requires_all and not all(constraint.key in node.metadata.labels for constraint in constraints)

    candidates = [(node, pods) for node, pods in cluster if node.name in feasible]
    ignored_names = {node.name for node, _ in candidates if lacks_one(node)}
    raw = {node.name: 0.0 for node, _ in candidates}
    for constraint in constraints:
        key = constraint.key
        domains = {node.metadata.labels.get(key, "") for node, _ in candidates if node.name not in ignored_names}
        size = len(candidates) - len(ignored_names) if key == HOSTNAME else len(domains)
        counts: Counter[str] = Counter()
        for node, pods in cluster:
            if not lacks_one(node) and constraint.includes(node):
                counts[node.metadata.labels.get(key, "")] += constraint.count(pods)
        for node, pods in candidates:
            if key in node.metadata.labels:
                count = constraint.count(pods) if key == HOSTNAME else counts[node.metadata.labels[key]]
                raw[node.name] += count * math.log(size + 2) + (constraint.max_skew - 1)
    counts_by_node = {name: int(score + 0.5) for name, score in raw.items() if name not in ignored_names}
    highest, least = max(counts_by_node.values(), default=0), min(counts_by_node.values(), default=0)
    scaled = {
        name: 100 if highest == 0 else 100 * (highest + least - score) // highest
        for name, score in counts_by_node.items()
    }
    return {name: scaled.get(name, 0) for name in raw}


# ---------------------------------------------------------------- affinity


def rules_of(pod: Pod) -> tuple[PodAffinity, PodAffinity]:
    affinity = pod.spec.affinity
    if affinity is None:
        return PodAffinity(), PodAffinity()
    return affinity.pod_affinity or PodAffinity(), affinity.pod_anti_affinity or PodAffinity()


def namespaces_of(term: PodAffinityTerm, owner: Pod) -> set[str]:
    if not term.namespaces and term.namespace_selector is None:
        return {owner.metadata.namespace}
    return set(term.namespaces)


def running_means(term: PodAffinityTerm, owner: Pod, incoming: Pod, namespaces: NamespaceLabels) -> bool:
    """Return True if a running pod's term means the incoming one."""
    meta = incoming.metadata
    is_selected = selects(term.namespace_selector, namespaces.get(meta.namespace, {}))
    return (meta.namespace in namespaces_of(term, owner) or is_selected) and selects(term.label_selector, meta.labels)


def incoming_means(term: PodAffinityTerm, incoming: Pod, running: Pod, namespaces: NamespaceLabels) -> bool:
    """Return True if the incoming pod's term means a running one."""
    meta = running.metadata
    namespaces_selected = {name for name, labels in namespaces.items() if selects(term.namespace_selector, labels)}
    # Of the selectors only an empty one reaches namespaces that nothing is known of.
    anywhere = term.namespace_selector == LabelSelector()
    return (meta.namespace in namespaces_of(term, incoming) | namespaces_selected or anywhere) and selects(
        term.label_selector, meta.labels
    )


def affinity_rejections(pod: Pod, cluster: PodsByNode, namespaces: NamespaceLabels) -> Rejections:
    near, far = (rules.required for rules in rules_of(pod))
    pods_near: Counter[tuple[str, str]] = Counter()
    pods_far: Counter[tuple[str, str]] = Counter()
    minding: Counter[tuple[str, str]] = Counter()
    for node, pods in cluster:
        labels = node.metadata.labels
        for running in pods:
            if near and all(incoming_means(term, pod, running, namespaces) for term in near):
                pods_near.update({(term.topology_key, labels.get(term.topology_key, "-")) for term in near})
            for term in far:
                if incoming_means(term, pod, running, namespaces):
                    pods_far[term.topology_key, labels.get(term.topology_key, "-")] += 1
            for term in rules_of(running)[1].required:
                if running_means(term, running, pod, namespaces):
                    minding[term.topology_key, labels.get(term.topology_key, "-")] += 1
    somebody_is_near = any(value != "-" for _, value in pods_near)
    suits_itself = all(incoming_means(term, pod, pod, namespaces) for term in near)
    rejections: Rejections = {}
    for node, _ in cluster:
        pairs = set(node.metadata.labels.items())
        has_keys = all(term.topology_key in node.metadata.labels for term in near)
        met = all((term.topology_key, node.metadata.labels.get(term.topology_key)) in pods_near for term in near)
        if near and not (has_keys and (met or (not somebody_is_near and suits_itself))):
            rejections[node.name] = UNRESOLVABLE, "node(s) didn't match pod affinity rules"
        elif pairs & pods_far.keys():
            rejections[node.name] = UNSCHEDULABLE, "node(s) didn't match pod anti-affinity rules"
        elif pairs & minding.keys():
            rejections[node.name] = UNSCHEDULABLE, "node(s) didn't satisfy existing pods anti-affinity rules"
    return rejections


def _weights(preferences: Iterable[WeightedPodAffinityTerm], sign: int) -> Iterable[tuple[PodAffinityTerm, int]]:
    return [(preference.pod_affinity_term, sign * preference.weight) for preference in preferences]


def affinity_scores(
    pod: Pod, cluster: PodsByNode, feasible: list[str], namespaces: NamespaceLabels, hard_weight: int
) -> dict[str, int] | None:
    """The normalised scores, None where no term means anybody."""
    weights: Counter[tuple[str, str]] = Counter()
    touched = False
    near, far = rules_of(pod)
    own = [*_weights(near.preferred, 1), *_weights(far.preferred, -1)]
    for node, pods in cluster:
        for running in pods:
            their_near, their_far = rules_of(running)
            theirs = [*_weights(their_near.preferred, 1), *_weights(their_far.preferred, -1)]
            if hard_weight:
                theirs += [(term, hard_weight) for term in their_near.required]
            matching_terms = [(term, weight) for term, weight in own if incoming_means(term, pod, running, namespaces)]
            matching_terms += [
                (term, weight) for term, weight in theirs if running_means(term, running, pod, namespaces)
            ]
            for term, weight in matching_terms:
                if term.topology_key in node.metadata.labels:
                    touched = True
                    weights[term.topology_key, node.metadata.labels[term.topology_key]] += weight
    if not touched:
        return None
    raw = {
        node.name: sum(weights[pair] for pair in node.metadata.labels.items())
        for node, _ in cluster
        if node.name in feasible
    }
    least, highest = min(raw.values()), max(raw.values())
    return {
        name: int(100.0 * ((score - least) / (highest - least))) if highest > least else 0
        for name, score in raw.items()
    }
