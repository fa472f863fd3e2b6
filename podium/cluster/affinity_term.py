"""One pod affinity term, compiled.

Source: kubernetes pkg/scheduler/framework/types.go and kube-scheduler/framework/types.go (AffinityTerm), v1.36.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from podium.objects.affinity import PodAffinityTerm
from podium.objects.selectors import NOTHING, Selector, compile_selector


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """Selects other pods by namespace and labels, and names the topology in which to be near them or away from them.

    The namespaces are the named ones and those whose labels `namespace_selector` matches.
    """

    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector = NOTHING
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the hash once, because every attempt looks terms up."""
        content = self.topology_key, self.selector, self.namespaces, self.namespace_selector
        object.__setattr__(self, "_hash", hash(content))

    def __hash__(self) -> int:
        return self._hash

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Return True if the term selects a pod with these labels in a namespace with those labels."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(labels)


def compile_term(term: PodAffinityTerm, namespace: str) -> AffinityTerm:
    """Compile the term of a pod in that namespace.

    Raises:
        FieldError: one of its selectors is invalid.
    """
    is_own_namespace_only = not term.namespaces and term.namespace_selector is None
    return AffinityTerm(
        term.topology_key,
        compile_selector(term.label_selector),
        frozenset((namespace,) if is_own_namespace_only else term.namespaces),
        compile_selector(term.namespace_selector),
    )
