"""The requirements of a pod on its node's labels.

Owns which parts of a pod's spec count. A pod may name alternatives and preferences: only the first alternative and the
heaviest preference count, and the others only once those have been taken out of the spec. Never changes a spec.

Source: karpenter pkg/scheduling/requirements.go, v1.15.0.
Differs: equal weights keep their order, however many preferences there are.
"""

from __future__ import annotations

from collections.abc import Iterator

from podium.objects.affinity import NodeSelectorTerm
from podium.objects.core import PodSpec, once_per_spec
from podium.objects.errors import FieldError
from podium.provisioner.scheduling.requirements import Requirement, Requirements


@once_per_spec
def pod_requirements(spec: PodSpec) -> Requirements:
    """Return the requirements with preferences: `strict_pod_requirements` and the heaviest preferred term.

    A preference counts like a requirement until it is dropped.

    Raises:
        FieldError: a requirement has no usable meaning.
    """
    affinity = spec.affinity and spec.affinity.node_affinity
    if not affinity or not affinity.preferred:
        return strict_pod_requirements(spec)
    # max takes the first of equal weights, as the sort of upstream leaves it in front.
    index, heaviest = max(enumerate(affinity.preferred), key=lambda item: item[1].weight)
    path = f"preferredDuringSchedulingIgnoredDuringExecution[{index}].preference"
    return strict_pod_requirements(spec).union(_expressions(heaviest.preference, path))


@once_per_spec
def strict_pod_requirements(spec: PodSpec) -> Requirements:
    """Return the node selector, and the first term of the required node affinity.

    Raises:
        FieldError: a requirement has no usable meaning.
    """
    selector = Requirements.of_labels(spec.node_selector)
    affinity = spec.affinity and spec.affinity.node_affinity
    if not affinity or affinity.required is None or not affinity.required.node_selector_terms:
        return selector
    path = "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
    return selector.union(_expressions(affinity.required.node_selector_terms[0], path))


def has_meaning(spec: PodSpec) -> bool:
    """Return True if the requirements of the pod can be read, in whichever order its alternatives are tried."""
    affinity = spec.affinity and spec.affinity.node_affinity
    if not affinity:
        return True
    terms = affinity.required.node_selector_terms if affinity.required is not None else ()
    try:
        for term in (*terms, *(preference.preference for preference in affinity.preferred)):
            for _ in _expressions(term, ""):
                pass
    except FieldError:
        return False
    return True


def _expressions(term: NodeSelectorTerm, path: str) -> Iterator[Requirement]:
    """Yield the requirements of a term on labels; those on fields do not count."""
    for index, expression in enumerate(term.match_expressions):
        expression_path = f"spec.affinity.nodeAffinity.{path}.matchExpressions[{index}]"
        yield Requirement.of(expression.key, expression.operator, expression.values, path=expression_path)
