"""Pod affinity terms, compiled once for each pod spec and namespace.

Source: kubernetes v1.36.2, pkg/scheduler/framework/types.go (PodInfo) and kube-scheduler/framework/types.go
(AffinityTerm).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from podium.cluster.affinity_term import AffinityTerm, compile_term
from podium.cluster.grouped_terms import grouped_terms
from podium.objects.affinity import PodAffinity, PodAffinityTerm
from podium.objects.core import Pod, PodSpec, once_per_spec
from podium.objects.errors import FieldError
from podium.objects.pod_limits import excess_of_pod_affinity


class TermKind(enum.Enum):
    """The kind of a term: required or preferred, affinity or anti-affinity."""

    __hash__ = object.__hash__  # members are singletons, and an enum's own hash runs Python code

    REQUIRED_AFFINITY = "requiredAffinityTerms"
    REQUIRED_ANTI_AFFINITY = "requiredAntiAffinityTerms"
    PREFERRED_AFFINITY = "preferredAffinityTerms"
    PREFERRED_ANTI_AFFINITY = "preferredAntiAffinityTerms"


class PodTerm(NamedTuple):
    """A term that a pod has. The weight is below 0 for preferred anti-affinity, and 0 for required terms."""

    kind: TermKind
    term: AffinityTerm
    weight: int = 0


@dataclass(frozen=True, slots=True)
class PodTerms:
    """All terms of a pod. A kind with an invalid term is empty; `errors` says why.

    `for_other_pods` are those that other pods must respect while the pod runs. It has every valid term of required
    anti-affinity. `not_enforced` says why not all of the pod's required anti-affinity can be enforced against others.
    """

    required_affinity: tuple[AffinityTerm, ...] = ()
    required_anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred: tuple[PodTerm, ...] = ()
    for_other_pods: tuple[PodTerm, ...] = ()
    errors: tuple[str, ...] = ()
    not_enforced: FieldError | None = None


_NO_TERMS: Final = PodTerms()


def pod_terms(pod: Pod) -> PodTerms:
    """Return the terms of the pod."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return _NO_TERMS
    by_namespace = _terms_by_namespace(pod.spec)
    namespace = pod.metadata.namespace
    terms = by_namespace.get(namespace)
    if terms is None:
        # Checked first: a pod with a hundred thousand terms would take seconds to compile.
        too_much = excess_of_pod_affinity(pod.spec)
        terms = by_namespace[namespace] = (
            _terms_of_crowd(affinity.pod_anti_affinity, namespace, too_much)
            if too_much
            else _compile(affinity.pod_affinity, affinity.pod_anti_affinity, namespace)
        )
    return terms


@once_per_spec
def _terms_by_namespace(spec: PodSpec) -> dict[str, PodTerms]:
    """Return the terms by namespace, filled on demand: a term without namespaces selects in its pod's namespace."""
    del spec
    return {}


def _compile(affinity: PodAffinity | None, anti_affinity: PodAffinity | None, namespace: str) -> PodTerms:
    affinity_spec, anti_affinity_spec = affinity or PodAffinity(), anti_affinity or PodAffinity()
    errors: list[str] = []

    def compile_terms(kind: TermKind, terms: Iterable[tuple[int, PodAffinityTerm]]) -> tuple[PodTerm, ...]:
        try:
            return tuple(PodTerm(kind, compile_term(term, namespace), weight) for weight, term in terms)
        except FieldError as error:
            errors.append(f"{kind.value}: {error}")
            return ()

    required_affinity = compile_terms(TermKind.REQUIRED_AFFINITY, ((0, term) for term in affinity_spec.required))
    required_anti = compile_terms(TermKind.REQUIRED_ANTI_AFFINITY, ((0, term) for term in anti_affinity_spec.required))
    preferred_terms = (
        *compile_terms(
            TermKind.PREFERRED_AFFINITY,
            ((weighted_term.weight, weighted_term.pod_affinity_term) for weighted_term in affinity_spec.preferred),
        ),
        *compile_terms(
            TermKind.PREFERRED_ANTI_AFFINITY,
            (
                (-weighted_term.weight, weighted_term.pod_affinity_term)
                for weighted_term in anti_affinity_spec.preferred
            ),
        ),
    )
    enforced_terms, not_enforced = required_anti, None
    if len(required_anti) < len(anti_affinity_spec.required):
        # One invalid term must not free the node of all the others that a running pod has.
        groups, not_enforced = grouped_terms(anti_affinity_spec.required, namespace)
        enforced_terms = _enforced_terms(groups)
    return PodTerms(
        required_affinity=_bare(required_affinity),
        required_anti_affinity=_bare(required_anti),
        preferred=preferred_terms,
        # As upstream: affinity is symmetric in scores, and anti-affinity in filters, too.
        for_other_pods=(*required_affinity, *enforced_terms, *preferred_terms),
        errors=tuple(errors),
        not_enforced=not_enforced,
    )


def _terms_of_crowd(anti_affinity: PodAffinity | None, namespace: str, too_much: str) -> PodTerms:
    """Return the terms that other pods must respect, of a pod with too many terms; the others only affect scores."""
    groups, not_enforced = grouped_terms(() if anti_affinity is None else anti_affinity.required, namespace)
    return PodTerms(
        required_anti_affinity=groups,
        for_other_pods=_enforced_terms(groups),
        errors=(too_much,),
        not_enforced=not_enforced,
    )


def _enforced_terms(terms: Iterable[AffinityTerm]) -> tuple[PodTerm, ...]:
    return tuple(PodTerm(TermKind.REQUIRED_ANTI_AFFINITY, term) for term in terms)


def _bare(terms: Sequence[PodTerm]) -> tuple[AffinityTerm, ...]:
    return tuple(pod_term.term for pod_term in terms)
