"""Pod affinity terms, compiled once for each pod spec and namespace.

Source: kubernetes pkg/scheduler/framework/types.go (PodInfo) and kube-scheduler/framework/types.go (AffinityTerm),
v1.36.2.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from podium.kube.errors import FieldError
from podium.kube.objects import Pod, PodAffinity, PodAffinityTerm, PodSpec, once_per_spec
from podium.kube.pod_limits import excess_of_pod_affinity
from podium.kube.selectors import NOTHING, Selector, compile_selector


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """Other pods, by namespace and labels, and the topology to be near them or far from them in.

    Namespaces are those named, and those whose labels `namespace_selector` matches.
    """

    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector = NOTHING
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Work the hash out once: every attempt looks terms up."""
        content = self.topology_key, self.selector, self.namespaces, self.namespace_selector
        object.__setattr__(self, "_hash", hash(content))

    def __hash__(self) -> int:
        return self._hash

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Whether it means a pod with these labels in the namespace, which has labels of its own."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(labels)


class TermKind(enum.Enum):
    """What a pod wants of the pods that its term means."""

    __hash__ = object.__hash__  # members are single, and an enum's own hash is a call of Python code

    REQUIRED_AFFINITY = "requiredAffinityTerms"
    REQUIRED_ANTI_AFFINITY = "requiredAntiAffinityTerms"
    PREFERRED_AFFINITY = "preferredAffinityTerms"
    PREFERRED_ANTI_AFFINITY = "preferredAntiAffinityTerms"


class CarriedTerm(NamedTuple):
    """A term that a pod has. The weight is below 0 for preferred anti-affinity, and 0 for required terms."""

    kind: TermKind
    term: AffinityTerm
    weight: int = 0


@dataclass(frozen=True, slots=True)
class PodTerms:
    """All terms of a pod. A kind of which one term is invalid is empty; `errors` says why."""

    required_affinity: tuple[AffinityTerm, ...] = ()
    required_anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred: tuple[CarriedTerm, ...] = ()
    carried: tuple[CarriedTerm, ...] = ()
    errors: tuple[str, ...] = ()


_NO_TERMS: Final = PodTerms()


def pod_terms(pod: Pod) -> PodTerms:
    """The terms of the pod."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return _NO_TERMS
    by_namespace = _terms_by_namespace(pod.spec)
    namespace = pod.metadata.namespace
    terms = by_namespace.get(namespace)
    if terms is None:
        too_much = excess_of_pod_affinity(pod.spec)
        terms = by_namespace[namespace] = (
            PodTerms(errors=(too_much,))
            if too_much
            else _compile(affinity.pod_affinity, affinity.pod_anti_affinity, namespace)
        )
    return terms


@once_per_spec
def _terms_by_namespace(spec: PodSpec) -> dict[str, PodTerms]:
    """To be filled as namespaces come: a term without namespaces means its pod's own."""
    del spec
    return {}


def _compile(affinity: PodAffinity | None, anti_affinity: PodAffinity | None, namespace: str) -> PodTerms:
    near, far = affinity or PodAffinity(), anti_affinity or PodAffinity()
    errors: list[str] = []

    def compiled(kind: TermKind, terms: Iterable[tuple[int, PodAffinityTerm]]) -> tuple[CarriedTerm, ...]:
        try:
            return tuple(CarriedTerm(kind, compile_term(term, namespace), weight) for weight, term in terms)
        except FieldError as error:
            errors.append(f"{kind.value}: {error}")
            return ()

    required_affinity = compiled(TermKind.REQUIRED_AFFINITY, ((0, term) for term in near.required))
    required_anti = compiled(TermKind.REQUIRED_ANTI_AFFINITY, ((0, term) for term in far.required))
    preferred = (
        *compiled(TermKind.PREFERRED_AFFINITY, ((each.weight, each.pod_affinity_term) for each in near.preferred)),
        *compiled(TermKind.PREFERRED_ANTI_AFFINITY, ((-each.weight, each.pod_affinity_term) for each in far.preferred)),
    )
    return PodTerms(
        required_affinity=_bare(required_affinity),
        required_anti_affinity=_bare(required_anti),
        preferred=preferred,
        carried=(*required_affinity, *required_anti, *preferred),
        errors=tuple(errors),
    )


def _bare(carried: Sequence[CarriedTerm]) -> tuple[AffinityTerm, ...]:
    return tuple(each.term for each in carried)


def compile_term(term: PodAffinityTerm, namespace: str) -> AffinityTerm:
    """The term of a pod in that namespace.

    Raises:
        FieldError: one of its selectors is invalid.
    """
    own = not term.namespaces and term.namespace_selector is None
    return AffinityTerm(
        term.topology_key,
        compile_selector(term.label_selector),
        frozenset((namespace,) if own else term.namespaces),
        compile_selector(term.namespace_selector),
    )
