"""Which parts of a pod's spec are requirements on its node."""

from __future__ import annotations

import pytest

from podium.objects.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from podium.objects.core import Pod, PodSpec
from podium.objects.errors import FieldError
from podium.provisioner.scheduling.pod_requirements import pod_requirements, strict_pod_requirements


def term(key: str, operator: str = "In", *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=key, operator=operator, values=values),))


def spec(
    *terms: NodeSelectorTerm,
    preferences: tuple[tuple[int, NodeSelectorTerm], ...] = (),
    selector: dict[str, str] | None = None,
) -> PodSpec:
    affinity = NodeAffinity(
        required=NodeSelector(node_selector_terms=terms) if terms else None,
        preferred=tuple(PreferredSchedulingTerm(weight=weight, preference=term) for weight, term in preferences),
    )
    return Pod(spec=PodSpec(node_selector=selector or {}, affinity=Affinity(node_affinity=affinity))).spec


def test_a_pod_without_selector_and_affinity_requires_nothing() -> None:
    assert len(pod_requirements(PodSpec())) == 0
    assert len(pod_requirements(PodSpec(affinity=Affinity()))) == 0
    assert len(pod_requirements(spec())) == 0


def test_only_the_first_required_term_counts() -> None:
    pod_spec = spec(term("zone", "In", "a"), term("rack", "In", "b"), selector={"team": "x"})
    assert str(pod_requirements(pod_spec)) == str(strict_pod_requirements(pod_spec)) == "team In [x], zone In [a]"


def test_only_the_heaviest_preferred_term_counts_unless_preferences_are_ignored() -> None:
    light, heavy = (1, term("rack", "In", "r")), (9, term("zone", "NotIn", "b"))
    pod_spec = spec(term("zone", "In", "a", "b"), preferences=(light, heavy))
    assert str(pod_requirements(pod_spec)) == "zone In [a]"
    assert str(strict_pod_requirements(pod_spec)) == "zone In [a b]"


def test_of_equally_heavy_preferred_terms_the_first_counts() -> None:
    assert str(pod_requirements(spec(preferences=((5, term("a", "Exists")), (5, term("b", "Exists")))))) == "a Exists"


def test_a_preference_that_contradicts_the_rest_leaves_no_value() -> None:
    pod_spec = spec(selector={"zone": "a"}, preferences=((1, term("zone", "In", "b")),))
    assert str(pod_requirements(pod_spec)) == "zone DoesNotExist"


def test_requirements_on_fields_do_not_count() -> None:
    by_name = NodeSelectorRequirement(key="metadata.name", operator="In", values=("node-1",))
    assert len(pod_requirements(spec(NodeSelectorTerm(match_fields=(by_name,))))) == 0


def test_old_names_of_labels_are_the_current_ones() -> None:
    pod_spec = spec(selector={"beta.kubernetes.io/arch": "arm64"})
    assert str(pod_requirements(pod_spec)) == "kubernetes.io/arch In [arm64]"


@pytest.mark.parametrize(
    ("pod_spec", "path"),
    [
        (
            spec(term("cpu", "Gt", "many")),
            "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values[0]",
        ),
        (
            spec(preferences=((1, term("cpu", "Exists")), (2, term("cpu", "Near")))),
            "preferredDuringSchedulingIgnoredDuringExecution[1].preference.matchExpressions[0].operator",
        ),
    ],
)
def test_a_requirement_without_meaning_is_named(pod_spec: PodSpec, path: str) -> None:
    with pytest.raises(FieldError) as error:
        pod_requirements(pod_spec)
    assert error.value.path == f"spec.affinity.nodeAffinity.{path}"
