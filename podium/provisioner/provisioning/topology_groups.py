"""Topology groups: how many pods of a selector are in each domain, and where the next one may go.

Owns the counts of one group, and the choice of a domain. Never looks for the pods or the nodes itself.

Source: karpenter pkg/controllers/provisioning/scheduling/topologygroup.go, topologynodefilter.go and
topologydomaingroup.go, v1.15.0.
Differs: a label with an empty value is no domain; upstream counts it, and then places nothing there.
Differs: where upstream takes any of several equally good domains, here it is the first by name.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from podium.objects.affinity import NodeSelectorTerm
from podium.objects.core import Pod, Taint, Toleration
from podium.objects.errors import FieldError
from podium.objects.meta import LabelSelector
from podium.objects.selectors import EVERYTHING, NOTHING, Selector, compile_selector
from podium.provisioner.apis.labels import HOSTNAME
from podium.provisioner.scheduling.requirements import Requirement, Requirements
from podium.provisioner.scheduling.taints import untolerated_taints

HONOR: Final = "Honor"
IGNORE: Final = "Ignore"
NO_LIMIT: Final = 2**31 - 1
COUNTS_SHOWN_MAX: Final = 25


class TopologyKind(enum.Enum):
    """The kind of a group's demand. The value is its name in messages."""

    SPREAD = "topology spread"
    AFFINITY = "pod affinity"
    ANTI_AFFINITY = "pod anti-affinity"


@dataclass(frozen=True)
class NodeFilter:
    """The nodes whose pods count for a spread; without requirements or policies, all of them."""

    requirements: tuple[Requirements, ...] = ()
    affinity_policy: str = ""
    taints_policy: str = ""
    tolerations: tuple[Toleration, ...] = ()

    @classmethod
    def of(cls, pod: Pod, affinity_policy: str, taints_policy: str) -> NodeFilter:
        """Return the nodes that the pod's node selector and any alternative of its required node affinity allow."""
        spec = pod.spec
        selector = Requirements.of_labels(spec.node_selector)
        affinity = spec.affinity and spec.affinity.node_affinity
        terms: tuple[Requirements, ...] = (selector,)
        if affinity and affinity.required is not None:
            terms = tuple(selector.union(_expressions(term)) for term in affinity.required.node_selector_terms)
        return cls(terms, affinity_policy, taints_policy, spec.tolerations)

    @property
    def is_open(self) -> bool:
        """Return True if all nodes' pods count."""
        # An alternative without requirements allows every node, and so does the whole filter.
        is_strict = self.affinity_policy == HONOR and bool(self.requirements) and all(map(len, self.requirements))
        return not is_strict and self.taints_policy != HONOR

    def matches(self, taints: Iterable[Taint], labels: Requirements) -> bool:
        """Return True if pods of a node with these taints and labels count."""
        if self.affinity_policy == HONOR and not self._allows(labels):
            return False
        return self.taints_policy != HONOR or not untolerated_taints(taints, self.tolerations)

    def _allows(self, labels: Requirements) -> bool:
        for requirement in self.requirements:
            if labels.is_compatible(requirement):
                return True
        return not self.requirements

    @property
    def identity(self) -> Hashable:
        """The parts that upstream compares: only the keys of requirements; equal items in pairs cancel out."""
        # Upstream's hash of a group skips unexported fields and XORs the items of a slice. Rules that differ in nothing
        # else share counts, as minDomains does, which is not hashed at all.
        return (
            _odd([frozenset(requirement.keys()) for requirement in self.requirements]),
            self.affinity_policy,
            self.taints_policy,
            _odd(self.tolerations),
        )


class Domains:
    """The values of one label that nodes of the NodePools may have, with the taints that come with each."""

    def __init__(self) -> None:
        self._taints: dict[str, list[tuple[Taint, ...]]] = {}

    def add(self, domain: str, taints: tuple[Taint, ...]) -> None:
        """Note that a NodePool with these taints has nodes of the domain."""
        taint_sets = self._taints.setdefault(domain, [])
        if taints not in taint_sets:
            taint_sets.append(taints)

    def open_to(self, tolerations: Sequence[Toleration], taints_policy: str) -> list[str]:
        """Return the domains in which a pod tolerates the nodes of some NodePool; all of them if taints are ignored."""
        if taints_policy == IGNORE:
            return list(self._taints)
        return [
            domain
            for domain, alternatives in self._taints.items()
            if any(not untolerated_taints(taints, tolerations) for taints in alternatives)
        ]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a pod about the pods of a selector."""

    kind: TopologyKind
    key: str
    namespaces: frozenset[str]
    selector: LabelSelector | None
    max_skew: int = NO_LIMIT
    min_domains: int | None = None
    node_filter: NodeFilter = NodeFilter()

    @property
    def identity(self) -> Hashable:
        """The parts that are equal for the rules that share a group."""
        nodes = self.node_filter.identity
        return self.kind, self.key, self.namespaces, self.max_skew, nodes, _selector_key(self.selector)


class TopologyGroup:
    """The pods of a selector, counted by domain, for all pods that have the same rule about them.

    Attributes:
        counted: The pods that count among those on nodes. Without a selector these are all, though the group then
            selects none of the pods that are placed.
        owners: The uids of the pods with this rule.
    """

    def __init__(self, rule: Rule, domains: Iterable[str]) -> None:
        self.kind = rule.kind
        self.key = rule.key
        self.namespaces = rule.namespaces
        self.selector = _selector_of(rule.selector)
        self.counted = EVERYTHING if rule.selector is None else self.selector
        self.node_filter = rule.node_filter
        self.owners: set[str] = set()
        self._counts: dict[str, int] = dict.fromkeys(filter(None, domains), 0)
        self._max_skew = rule.max_skew
        self._min_domains = rule.min_domains
        self._empty = set(self._counts)
        self._unread_domains: list[Mapping[str, None]] = []

    @property
    def counts(self) -> dict[str, int]:
        """How many of the pods are in each domain."""
        if self._unread_domains:
            self._register_unread()
        return self._counts

    @property
    def empty(self) -> set[str]:
        """The domains without any of the pods."""
        if self._unread_domains:
            self._register_unread()
        return self._empty

    def register(self, domain: str) -> None:
        """Note that the domain is there. An empty value is none."""
        if self._unread_domains:
            self._unread_domains.append({domain: None})
        elif domain and domain not in self._counts:
            self._counts[domain] = 0
            self._empty.add(domain)

    def register_all(self, domains: Mapping[str, None]) -> None:
        """Note that the domains are there, in their order. Cost: none until the counts are looked at.

        Of thousands of nodes and hundreds of groups, a plan for few pods looks at few.
        """
        self._unread_domains.append(domains)

    def _register_unread(self) -> None:
        for domains in self._unread_domains:
            if domains.keys() <= self._counts.keys():
                continue
            fresh_domains = {domain: 0 for domain in domains if domain and domain not in self._counts}
            self._counts |= fresh_domains
            self._empty |= fresh_domains.keys()
        self._unread_domains.clear()

    def record(self, domains: Iterable[str]) -> None:
        """Count one more pod in each of the domains."""
        counts = self.counts
        for domain in filter(None, domains):
            counts[domain] = counts.get(domain, 0) + 1
            self._empty.discard(domain)

    def selects(self, pod: Pod) -> bool:
        """Return True if the pod is one of those that the group counts."""
        return pod.metadata.namespace in self.namespaces and self.selector.matches(pod.metadata.labels)

    def most_on_host(self, pod: Pod) -> int | None:
        """Return how many pods of the group a host may have before this pod, or None if that does not decide."""
        if self.kind is TopologyKind.SPREAD:
            return self._max_skew - (1 if self.selects(pod) else 0)
        return 0 if self.kind is TopologyKind.ANTI_AFFINITY else None

    def open_domains(self, pod: Pod, pod_domains: Requirement) -> Iterable[str] | None:
        """Return the domains of which a node must have one to take the pod, or None if counts do not decide alone.

        Args:
            pod_domains: those that the pod itself allows.
        """
        counts = self.counts
        if self.kind is TopologyKind.SPREAD:
            limit = self._max_skew + self._least(pod_domains) - (1 if self.selects(pod) else 0)
            return [domain for domain, count in counts.items() if count <= limit]
        if self.kind is TopologyKind.ANTI_AFFINITY:
            return [domain for domain in self.empty if pod_domains.has(domain)]
        return [domain for domain, count in counts.items() if count > 0 and pod_domains.has(domain)] or None

    def next_domains(self, pod: Pod, pod_domains: Requirement, node_domains: Requirement) -> Requirement:
        """Return the domains in which the pod may be placed.

        Args:
            pod_domains: those that the pod itself allows.
            node_domains: those that the node can have.
        """
        own_domain = self._own_domain(node_domains)
        if self.kind is TopologyKind.SPREAD:
            domains = self._next_spread(pod, pod_domains, node_domains, own_domain)
        elif self.kind is TopologyKind.AFFINITY:
            domains = self._next_affinity(pod, pod_domains, node_domains, own_domain)
        else:
            domains = self._next_anti_affinity(pod_domains, node_domains, own_domain)
        return Requirement(self.key, False, frozenset(domains))

    def refusal(self, pod_domains: Requirement, node_domains: Requirement) -> str:
        """Return the sentence that no domain is left, with the present counts."""
        domains = sorted(self.counts)
        counts = ", ".join(f"{domain}: {self.counts[domain]}" for domain in domains[:COUNTS_SHOWN_MAX])
        if len(domains) > COUNTS_SHOWN_MAX:
            counts += f" and {len(domains) - COUNTS_SHOWN_MAX} other(s)"
        return (
            f"unsatisfiable topology constraint for {self.kind.value}, key={self.key} "
            f"(counts = {counts}, podDomains = {pod_domains}, nodeDomains = {node_domains}"
        )

    def _own_domain(self, node_domains: Requirement) -> str | None:
        """Return the node's name, if nodes themselves are the domains: a new one is not registered yet."""
        if self.key != HOSTNAME or len(node_domains.values) != 1:
            return None
        return next(iter(node_domains.values))

    def _next_spread(
        self, pod: Pod, pod_domains: Requirement, node_domains: Requirement, own_domain: str | None
    ) -> list[str]:
        own_count = 1 if self.selects(pod) else 0
        if own_domain is not None:
            return [own_domain] if self.counts.get(own_domain, 0) + own_count <= self._max_skew else []
        limit = self._max_skew + self._least(pod_domains) - own_count
        counts = self.counts
        valid = [domain for domain, count in counts.items() if count <= limit and node_domains.has(domain)]
        # One domain although others may be valid: a second constraint on the same key can then fail. Upstream does not
        # go back.
        return [min(valid, key=lambda domain: (counts[domain], domain))] if valid else []

    def _least(self, pod_domains: Requirement) -> int:
        """Return the minimum that the skew is measured against."""
        if self.key == HOSTNAME:
            return 0  # a new node can always be bought
        counts = [count for domain, count in self.counts.items() if pod_domains.has(domain)]
        # KEP-3022: with too few domains the minimum is 0, as if the missing ones were there and empty.
        if self._min_domains is not None and len(counts) < self._min_domains:
            return 0
        return min(counts, default=NO_LIMIT)

    def _next_affinity(
        self, pod: Pod, pod_domains: Requirement, node_domains: Requirement, own_domain: str | None
    ) -> list[str]:
        if own_domain is not None:
            if not pod_domains.has(own_domain):
                return []
            return [own_domain] if self.counts.get(own_domain, 0) > 0 or self._may_start(pod, pod_domains) else []
        domains_taken = [
            domain
            for domain, count in self.counts.items()
            if count > 0 and pod_domains.has(domain) and node_domains.has(domain)
        ]
        if domains_taken or not self._may_start(pod, pod_domains):
            return domains_taken
        common_domains = pod_domains.intersection(node_domains)
        first = min((domain for domain in self.counts if common_domains.has(domain)), default=None)
        # Upstream adds any allowed domain, in the order of a Go map, even one that the node cannot have.
        any_allowed = min((domain for domain in self.counts if pod_domains.has(domain)), default=None)
        return [domain_set for domain_set in (first, any_allowed) if domain_set is not None]

    def _may_start(self, pod: Pod, pod_domains: Requirement) -> bool:
        """Return True if the pod may be the first of its group: it selects itself, and its domains have no members."""
        if not self.selects(pod):
            return False
        return not any(count > 0 and pod_domains.has(domain) for domain, count in self.counts.items())

    def _next_anti_affinity(
        self, pod_domains: Requirement, node_domains: Requirement, own_domain: str | None
    ) -> list[str]:
        if own_domain is not None:
            return [] if self.counts.get(own_domain, 0) else [own_domain]
        # Most domains of a large cluster are empty, while a node can have few values.
        if not node_domains.complement and len(node_domains.values) < len(self.empty):
            return [domain for domain in node_domains.values if domain in self.empty and pod_domains.has(domain)]
        return [domain for domain in self.empty if node_domains.has(domain) and pod_domains.has(domain)]


def _selector_of(selector: LabelSelector | None) -> Selector:
    try:
        return compile_selector(selector)
    except FieldError:
        return NOTHING


def _selector_key(selector: LabelSelector | None) -> Hashable:
    if selector is None:
        return None
    expressions = frozenset(
        (expression.key, expression.operator, frozenset(expression.values)) for expression in selector.match_expressions
    )
    return frozenset(selector.match_labels.items()), expressions


def _expressions(term: NodeSelectorTerm) -> list[Requirement]:
    return [
        Requirement.of(expression.key, expression.operator, expression.values) for expression in term.match_expressions
    ]


def _odd(items: Sequence[Hashable]) -> frozenset[Hashable]:
    if len(items) < 2:
        return frozenset(items)
    return frozenset(item for item, count in Counter(items).items() if count % 2)
