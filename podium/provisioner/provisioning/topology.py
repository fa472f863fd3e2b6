"""The topology of a plan: every rule about other pods, with the counts of pods by domain as pods are placed.

Owns the groups of the pods that are placed, and the groups by which pods on nodes repel others. One plan owns one
topology and changes it; the cluster it is made from stays as it is.

Source: karpenter pkg/controllers/provisioning/scheduling/topology.go, v1.15.0.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import itemgetter
from typing import TypeAlias

from podium.objects.affinity import PodAffinity, PodAffinityTerm
from podium.objects.core import Pod, Taint, TopologySpreadConstraint
from podium.objects.meta import LabelSelector, LabelSelectorRequirement
from podium.objects.selectors import compile_selector
from podium.provisioner.apis.labels import HOSTNAME
from podium.provisioner.apis.objects import ClusterObjects, NodePool, ProvidedNode
from podium.provisioner.cloudprovider.instance_types import InstanceType
from podium.provisioner.provisioning.node_index import Limits
from podium.provisioner.provisioning.topology_groups import (
    HONOR,
    IGNORE,
    Domains,
    NodeFilter,
    Rule,
    TopologyGroup,
    TopologyKind,
)
from podium.provisioner.scheduling.refusals import Refusal
from podium.provisioner.scheduling.requirements import Requirement, Requirements
from podium.provisioner.state.state_node import StateNode

_Labels: TypeAlias = frozenset[tuple[str, str]]
_Selected: TypeAlias = dict[tuple[str, _Labels], tuple[list[TopologyGroup], int]]
"""By namespace and labels of a pod: the groups that select it, and how many groups were looked at."""


class TopologyBasis:
    """The nodes and the pods on them, as the topologies of all plans over one cluster count them.

    Args:
        nodes: all nodes, those that are leaving too.
        domains: the domains of the NodePools, by label.

    Attributes:
        counted: The pods on nodes, by namespace and by their labels, each with its number in the order of all.
        repelling: Pods on nodes whose required anti-affinity repels others, each with its node.
    """

    def __init__(self, objects: ClusterObjects, nodes: Sequence[StateNode], domains: dict[str, Domains]) -> None:
        self.domains = domains
        self.namespaces = objects.namespaces
        self.nodes = {node.metadata.name: node for node in objects.nodes}
        self.counted: dict[str, dict[_Labels, list[tuple[int, Pod]]]] = defaultdict(dict)
        for number, pod in enumerate(objects.pods):
            if pod.node_name and not pod.has_ended and not pod.is_terminating:
                of_namespace = self.counted[pod.metadata.namespace]
                of_namespace.setdefault(frozenset(pod.metadata.labels.items()), []).append((number, pod))
        self.repelling = tuple(
            (pod, state.node)
            for state in nodes
            if state.node is not None
            for pod in state.pods
            if pod.spec.affinity and pod.spec.affinity.pod_anti_affinity
        )
        self._labels: dict[str, Requirements] = {}
        self._counted_by_rule: dict[Hashable, Sequence[tuple[str, str]]] = {}

    def pods_counted_by(self, identity: Hashable, group: TopologyGroup) -> Sequence[tuple[str, str]]:
        """Return the uids of the pods on nodes that a group of this identity counts, each with its domain.

        Cost: one pass over the labels of the pods of its namespaces, for all plans together.
        """
        if identity not in self._counted_by_rule:
            self._counted_by_rule[identity] = tuple(self._pods_counted(group))
        return self._counted_by_rule[identity]

    def _pods_counted(self, group: TopologyGroup) -> Iterator[tuple[str, str]]:
        numbered_pods = [
            numbered_pod
            for namespace in group.namespaces
            for labels, pods in self.counted.get(namespace, {}).items()
            if group.counted.matches(dict(labels))
            for numbered_pod in pods
        ]
        for _, pod in sorted(numbered_pods, key=itemgetter(0)):
            node = self.nodes.get(pod.node_name)
            if node is None:
                continue
            domain = node.metadata.labels.get(group.key)
            # Kubelets set the label, but a node that was written by hand may lack it; its name is its host.
            if domain is None and group.key == HOSTNAME:
                domain = node.metadata.name
            if domain is not None and (group.node_filter.is_open or self.passes(group, node)):
                yield pod.uid, domain

    def passes(self, group: TopologyGroup, node: ProvidedNode) -> bool:
        """Return True if pods on the node count for the group."""
        return group.node_filter.matches(node.spec.taints, self.labels_of(node))

    def labels_of(self, node: ProvidedNode) -> Requirements:
        """Return the node's labels."""
        name = node.metadata.name
        labels = self._labels.get(name)
        if labels is None:
            labels = self._labels[name] = Requirements.of_labels(node.metadata.labels)
        return labels


class Topology:
    """The groups of one plan.

    Args:
        nodes: the nodes that pods can be placed on.
        pods: the pods that are placed; they do not count where they are now.
        ignore_preferences: whether preferences have no effect.
    """

    def __init__(
        self,
        basis: TopologyBasis,
        nodes: Sequence[StateNode],
        pods: Sequence[Pod],
        *,
        ignore_preferences: bool = False,
    ) -> None:
        self._ignore_preferences = ignore_preferences
        self._basis = basis
        self._nodes = nodes
        self._groups: dict[object, TopologyGroup] = {}
        self._inverse: dict[object, TopologyGroup] = {}
        self._owned: dict[str, list[TopologyGroup]] = {}
        self._repelling: dict[str, list[TopologyGroup]] = defaultdict(list)
        self._all_groups: list[TopologyGroup] = []
        self._all_inverse: list[TopologyGroup] = []
        self._of_hostnames: list[TopologyGroup] = []
        self._registered: dict[str, int] = {}
        self._domains: dict[str, dict[str, None]] = {}
        self._selected: _Selected = {}
        self._selected_inverse: _Selected = {}
        # Pods that are planned are counted where they are planned, not where they still are.
        self._moving = {pod.uid for pod in pods}
        for pod, node in basis.repelling:
            if pod.uid not in self._moving:
                self._repel(pod, node)
        for pod in pods:
            self.update(pod)

    def update(self, pod: Pod) -> None:
        """Take the pod's rules as they are now: it is new, or its preferences changed."""
        for group in self._owned.get(pod.uid, ()):
            group.owners.discard(pod.uid)
        affinity = pod.spec.affinity
        anti = affinity and affinity.pod_anti_affinity
        if anti and anti.required:
            self._repel(pod, None)
        own_groups: list[TopologyGroup] = []
        for rule in (*self._spreads(pod), *self._affinities(pod)):
            identity = rule.identity
            # Shared by identity: a thousand pods of a Deployment have one group, with one set of counts.
            group_there = self._groups.get(identity)
            if group_there is None:
                group_there = self._groups[identity] = self._group(rule, pod, self._all_groups)
                self._count(group_there, identity)
            group_there.owners.add(pod.uid)
            own_groups.append(group_there)
        self._owned[pod.uid] = own_groups

    def register(self, hostname: str) -> None:
        """Note that a node of this name is there."""
        registrations = self._registered.get(hostname, 0)
        for group in self._of_hostnames[registrations:]:
            group.register(hostname)
        self._registered[hostname] = len(self._of_hostnames)

    def register_all(self, hostnames: Mapping[str, None]) -> None:
        """Note that the nodes of these names are there."""
        for group in self._of_hostnames:
            group.register_all(hostnames)

    def record(self, pod: Pod, taints: Sequence[Taint], requirements: Requirements) -> None:
        """Count a pod that was placed on a node with these taints and requirements."""
        for group in self._selecting(pod):
            if not group.node_filter.matches(taints, requirements):
                continue
            domains = requirements.get(group.key)
            is_settled = not domains.complement and len(domains.values) == 1
            # Anti-affinity keeps others out of wherever the pod may end up.
            if is_settled or group.kind is TopologyKind.ANTI_AFFINITY:
                group.record(domains.values)
        for group in self._repelling.get(pod.uid, ()):
            group.record(requirements.get(group.key).values)

    def counting(self, pod: Pod) -> Iterator[TopologyGroup]:
        """Yield the groups whose counts may change as the pod is placed."""
        yield from self._selecting(pod)
        yield from self._repelling.get(pod.uid, ())

    def limits_of(self, pod: Pod, strict: Requirements) -> Limits:
        """Return the demands on the node that takes the pod, by the present counts.

        Args:
            strict: what the pod requires of a node, preferences aside.
        """
        hosts: list[tuple[TopologyGroup, int]] = []
        domains: list[tuple[str, Iterable[str]]] = []
        for group in (*self._owned.get(pod.uid, ()), *self._selecting_inverse(pod)):
            if group.key == HOSTNAME:
                limit = group.most_on_host(pod)
                if limit is not None:
                    hosts.append((group, limit))
            else:
                open_domains = group.open_domains(pod, strict.get(group.key))
                if open_domains is not None:
                    domains.append((group.key, open_domains))
        return Limits(hosts, domains)

    def narrow(
        self, pod: Pod, taints: Sequence[Taint], strict: Requirements, node: Requirements
    ) -> Requirements | Refusal:
        """Narrow the requirements of a node by the pod's rules, and by those of pods that repel it.

        Args:
            strict: what the pod requires of a node, preferences aside.
            node: what the node is like.
        """
        requirements: list[Requirement] = []
        for group in self._concerning(pod, taints, node):
            domains_allowed, domains_offered = strict.get(group.key), node.get(group.key)
            domains = group.next_domains(pod, domains_allowed, domains_offered)
            if not domains.values:
                return Refusal(functools.partial(group.refusal, domains_allowed, domains_offered))
            requirements.append(domains)
        return node.union(requirements) if requirements else node

    def _concerning(self, pod: Pod, taints: Sequence[Taint], node: Requirements) -> Iterator[TopologyGroup]:
        # Two rules of a pod may have one group, which must narrow only once. The counts stay the same in between.
        group_ids: set[int] = set()
        for group in self._owned.get(pod.uid, ()):
            if id(group) not in group_ids:
                group_ids.add(id(group))
                yield group
        for group in self._selecting_inverse(pod):
            if group.node_filter.matches(taints, node):
                yield group

    def _selecting(self, pod: Pod) -> list[TopologyGroup]:
        return _selecting_groups(self._selected, self._all_groups, pod)

    def _selecting_inverse(self, pod: Pod) -> list[TopologyGroup]:
        return _selecting_groups(self._selected_inverse, self._all_inverse, pod)

    # ------------------------------------------------------------ counts

    def _count(self, group: TopologyGroup, identity: Hashable) -> None:
        if group.node_filter.is_open:
            group.register_all(self._domains_of(group.key))
        else:
            group.register_all(
                dict.fromkeys(
                    state.labels[group.key]
                    for state in self._nodes
                    if group.key in state.labels and state.node is not None and self._basis.passes(group, state.node)
                )
            )
        for uid, domain in self._basis.pods_counted_by(identity, group):
            if uid not in self._moving:
                group.record((domain,))

    def _domains_of(self, key: str) -> Mapping[str, None]:
        """Return the domains of the nodes that pods can be placed on, in the order of these."""
        if key not in self._domains:
            self._domains[key] = dict.fromkeys(
                state.labels[key] for state in self._nodes if key in state.labels and state.node is not None
            )
        return self._domains[key]

    def _repel(self, pod: Pod, node: ProvidedNode | None) -> None:
        """Let the pod's required anti-affinity repel others: from its node, or from wherever it is placed."""
        affinity = pod.spec.affinity
        anti = affinity and affinity.pod_anti_affinity
        if not anti:
            return
        for term in anti.required:
            rule = self._affinity_rule(TopologyKind.ANTI_AFFINITY, pod, term)
            identity = rule.identity
            group = self._inverse.get(identity)
            if group is None:
                group = self._inverse[identity] = self._group(rule, pod, self._all_inverse)
            domain = node.metadata.labels.get(group.key) if node is not None else None
            if domain is not None:
                group.record((domain,))
            if pod.uid not in group.owners:
                group.owners.add(pod.uid)
                self._repelling[pod.uid].append(group)

    def _group(self, rule: Rule, pod: Pod, groups: list[TopologyGroup]) -> TopologyGroup:
        domains = self._basis.domains.get(rule.key)
        policy = rule.node_filter.taints_policy
        group = TopologyGroup(rule, () if domains is None else domains.open_to(pod.spec.tolerations, policy))
        groups.append(group)
        if group.key == HOSTNAME:
            self._of_hostnames.append(group)
        return group

    # ------------------------------------------------------------ rules of a pod

    def _spreads(self, pod: Pod) -> Iterator[Rule]:
        for constraint in pod.spec.topology_spread_constraints:
            if self._ignore_preferences and constraint.when_unsatisfiable != "DoNotSchedule":
                continue
            # The API's defaults, which a dump of YAML files has not been through.
            taints_policy = IGNORE if constraint.node_taints_policy is None else constraint.node_taints_policy
            affinity_policy = HONOR if constraint.node_affinity_policy is None else constraint.node_affinity_policy
            yield Rule(
                TopologyKind.SPREAD,
                constraint.topology_key,
                frozenset((pod.metadata.namespace,)),
                _narrowed_selector(constraint, pod),
                constraint.max_skew,
                constraint.min_domains,
                NodeFilter.of(pod, affinity_policy, taints_policy),
            )

    def _affinities(self, pod: Pod) -> Iterator[Rule]:
        affinity = pod.spec.affinity
        if affinity is None:
            return
        for kind, rules in (
            (TopologyKind.AFFINITY, affinity.pod_affinity),
            (TopologyKind.ANTI_AFFINITY, affinity.pod_anti_affinity),
        ):
            for term in self._terms(rules):
                yield self._affinity_rule(kind, pod, term)

    def _terms(self, rules: PodAffinity | None) -> Iterable[PodAffinityTerm]:
        if rules is None:
            return ()
        if self._ignore_preferences:
            return rules.required
        # Preferences count like requirements until the pod is relaxed, so they can buy nodes. Upstream's choice.
        return (*rules.required, *(term.pod_affinity_term for term in rules.preferred))

    def _affinity_rule(self, kind: TopologyKind, pod: Pod, term: PodAffinityTerm) -> Rule:
        return Rule(kind, term.topology_key, self._namespaces_of(pod, term), term.label_selector)

    def _namespaces_of(self, pod: Pod, term: PodAffinityTerm) -> frozenset[str]:
        if term.namespace_selector is None:
            return frozenset(term.namespaces or (pod.metadata.namespace,))
        selector = compile_selector(term.namespace_selector)
        names = (
            namespace.metadata.name
            for namespace in self._basis.namespaces
            if selector.matches(namespace.metadata.labels)
        )
        return frozenset((*names, *term.namespaces))


def _selecting_groups(selections: _Selected, groups: Sequence[TopologyGroup], pod: Pod) -> list[TopologyGroup]:
    """Return the groups that select the pod; those that have been looked at for pods with its labels are remembered."""
    # Keyed by labels, not by pod: replicas share them, and groups only ever grow, so the scan goes on where it ended.
    key = (pod.metadata.namespace, frozenset(pod.metadata.labels.items()))
    matching, group_count = selections.get(key, ([], 0))
    if group_count < len(groups):
        matching += [group for group in groups[group_count:] if group.selects(pod)]
        selections[key] = (matching, len(groups))
    return matching


def domains_of(node_pools: Iterable[NodePool], instance_types: Sequence[InstanceType]) -> dict[str, Domains]:
    """Return the values of each label that nodes of these NodePools may have; offerings do not matter."""
    if not instance_types:
        return {}
    by_label: dict[str, Domains] = defaultdict(Domains)
    # Instance types share most of their requirements, so each of those is looked at once for each NodePool.
    requirements: dict[str, set[Requirement]] = defaultdict(set)
    counts: Counter[str] = Counter()
    for instance_type in instance_types:
        for requirement in instance_type.requirements:
            requirements[requirement.key].add(requirement)
            counts[requirement.key] += 1
    all_values = {
        key: frozenset(value for requirement in of_key for value in requirement.values)
        for key, of_key in requirements.items()
    }
    for pool in node_pools:
        taints = pool.spec.template.spec.taints
        values: dict[str, AbstractSet[str]] = dict(all_values)
        for pool_requirement in pool_requirements(pool):
            common = {
                value
                for offer in requirements.get(pool_requirement.key, ())
                for value in offer.intersection(pool_requirement).values
            }
            # A label that types lack can have any value that the NodePool names. For NotIn these are the excluded ones,
            # as upstream.
            if pool_requirement.operator == "In" or counts[pool_requirement.key] < len(instance_types):
                common |= pool_requirement.values
            values[pool_requirement.key] = common
        for key, domains in values.items():
            for domain in domains:
                by_label[key].add(domain, taints)
    return dict(by_label)


def pool_requirements(pool: NodePool) -> Requirements:
    """Return the requirements of a NodePool on its nodes' labels: its own, and the labels of its template."""
    return required_of(pool).union(Requirements.of_labels(pool.spec.template.metadata.labels))


def required_of(pool: NodePool) -> Requirements:
    """Return the requirements of a NodePool, without the labels of its template."""
    return Requirements(
        Requirement.of(requirement.key, requirement.operator, requirement.values, min_values=requirement.min_values)
        for requirement in pool.spec.template.spec.requirements
    )


def _narrowed_selector(constraint: TopologySpreadConstraint, pod: Pod) -> LabelSelector | None:
    """Return the selector with the pod's own values of `matchLabelKeys`."""
    selector, labels = constraint.label_selector, pod.metadata.labels
    if selector is None or not constraint.match_label_keys:
        return selector
    expressions = tuple(
        LabelSelectorRequirement(key=key, operator="In", values=(labels[key],))
        # A key that the pod lacks is ignored, as the API's documentation says, and not matched as an empty value.
        for key in constraint.match_label_keys
        if key in labels
    )
    return LabelSelector(
        match_labels=selector.match_labels, match_expressions=(*selector.match_expressions, *expressions)
    )
