"""Required anti-affinity of a running pod with very many terms, or with invalid ones: all valid terms are enforced.

Terms of one topology key become one term, which selects a pod that any of them selects. The cost of matching an
incoming pod does not grow with the number of terms that require labels which the pod does not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from podium.cluster.affinity_term import AffinityTerm
from podium.objects.affinity import PodAffinityTerm
from podium.objects.errors import FieldError
from podium.objects.selectors import EVERYTHING, NOTHING, Operator, Selector, compile_selector

KEYS_MAX: Final = 1_000
"""How many topology keys the terms of one pod may have: nodes have fewer labels."""

_REQUIRED: Final = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"
_Pair: TypeAlias = tuple[str, str] | None


class _Member(NamedTuple):
    """One of the terms."""

    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        if namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(labels)


@dataclass(frozen=True, slots=True, eq=False)
class AnyOf(AffinityTerm):
    """Selects a pod that any of its members selects. Equal only to itself.

    Members are indexed by a label that they require; those that require no particular label are always checked.
    """

    members: dict[_Pair, list[_Member]] = field(default_factory=dict, repr=False)

    def __eq__(self, other: object) -> bool:
        # Comparing members would take as long as matching them; a pod's terms are compiled only once.
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Return True if one of the members selects a pod with these labels in a namespace with those labels."""
        return any(
            member.matches(namespace, labels, namespace_labels)
            for pair in (None, *labels.items())
            for member in self.members.get(pair, ())
        )


def grouped_terms(
    terms: Iterable[PodAffinityTerm], namespace: str
) -> tuple[tuple[AffinityTerm, ...], FieldError | None]:
    """Return the pod's terms in that namespace, grouped by topology key, and why some of them are left out."""
    groups: dict[str, AnyOf] = {}
    not_enforced: FieldError | None = None
    pod_namespaces = frozenset((namespace,))
    for index, term in enumerate(terms):
        group = groups.get(term.topology_key)
        try:
            # Before the term is compiled, because too many keys are the term's error as well.
            if group is None:
                group = _new_group(groups, term.topology_key)
            pair, member = _plain(term, pod_namespaces) or _compile(term, pod_namespaces)
        except FieldError as error:
            not_enforced = not_enforced or FieldError(f"{_REQUIRED}[{index}].{error.path}", error.detail)
            continue
        group.members.setdefault(pair, []).append(member)
    return tuple(groups.values()), not_enforced


def _new_group(groups: dict[str, AnyOf], topology_key: str) -> AnyOf:
    if len(groups) == KEYS_MAX:
        raise FieldError("topologyKey", f"more than {KEYS_MAX} different keys")
    group = groups[topology_key] = AnyOf(topology_key, EVERYTHING, frozenset(), EVERYTHING)
    return group


def _plain(term: PodAffinityTerm, pod_namespaces: frozenset[str]) -> tuple[_Pair, _Member] | None:
    """Return the member for a term that requires one label only: a lookup by that label needs no other check."""
    selector = term.label_selector
    if selector is None or selector.match_expressions or len(selector.match_labels) != 1:
        return None
    if term.namespace_selector is not None:
        return None
    [pair] = selector.match_labels.items()
    return pair, _Member(EVERYTHING, frozenset(term.namespaces) or pod_namespaces, NOTHING)


def _compile(term: PodAffinityTerm, pod_namespaces: frozenset[str]) -> tuple[_Pair, _Member]:
    selector = compile_selector(term.label_selector)
    is_own = not term.namespaces and term.namespace_selector is None
    namespaces = pod_namespaces if is_own else frozenset(term.namespaces)
    return _pair(selector), _Member(selector, namespaces, compile_selector(term.namespace_selector))


def _pair(selector: Selector) -> _Pair:
    """Return a label that every selected pod must have, or None if there is none, or a choice of several."""
    # With several values, the member would have to stand under each of them.
    for requirement in selector.requirements:
        if requirement.operator is Operator.IN and len(requirement.values) == 1:
            (value,) = requirement.values
            return requirement.key, value
    return None
