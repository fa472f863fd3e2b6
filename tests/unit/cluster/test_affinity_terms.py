from __future__ import annotations

from typing import Any

from podium.cluster.affinity_terms import PodTerms, TermKind, pod_terms
from podium.objects.selectors import EVERYTHING, NOTHING
from tests.builders import pod
from tests.unit.cluster.changing_clusters import PREFERRED, REQUIRED

WEB = {"matchLabels": {"app": "web"}}
BROKEN = {"matchExpressions": [{"key": "app", "operator": "Like"}]}


def term(**content: Any) -> dict[str, Any]:
    return {"topologyKey": "zone", "labelSelector": WEB, **content}


def near(*terms: dict[str, Any], **kwargs: Any) -> PodTerms:
    return pod_terms(pod(affinity={"podAffinity": {REQUIRED: list(terms)}}, **kwargs))


def test_a_term_without_namespaces_means_its_pods_own() -> None:
    (default,) = near(term()).required_affinity
    (foreign_term,) = near(term(), namespace="other").required_affinity
    assert (default.namespaces, foreign_term.namespaces) == ({"default"}, {"other"})


def test_named_and_selected_namespaces_take_the_place_of_the_own() -> None:
    (named_term,) = near(term(namespaces=["a", "b"])).required_affinity
    (selected_term,) = near(term(namespaceSelector={})).required_affinity
    assert (named_term.namespaces, named_term.namespace_selector) == ({"a", "b"}, NOTHING)
    assert (selected_term.namespaces, selected_term.namespace_selector) == (frozenset(), EVERYTHING)


def test_a_term_matches_by_namespace_or_its_labels_and_by_the_pods_labels() -> None:
    (affinity_term,) = near(term(namespaces=["a"], namespaceSelector={"matchLabels": {"team": "x"}})).required_affinity
    assert affinity_term.matches("a", {"app": "web"}, {})
    assert affinity_term.matches("b", {"app": "web"}, {"team": "x"})
    assert not affinity_term.matches("b", {"app": "web"}, {"team": "y"})
    assert not affinity_term.matches("a", {"app": "db"}, {"team": "x"})


def test_a_term_without_label_selector_means_nobody() -> None:
    (affinity_term,) = near({"topologyKey": "zone"}).required_affinity
    assert not affinity_term.matches("default", {}, {})


def test_preferred_anti_affinity_weighs_against() -> None:
    preferences = {PREFERRED: [{"weight": 5, "podAffinityTerm": term()}]}
    terms = pod_terms(pod(affinity={"podAffinity": preferences, "podAntiAffinity": preferences}))
    assert [(weighted_term.kind, weighted_term.weight) for weighted_term in terms.preferred] == [
        (TermKind.PREFERRED_AFFINITY, 5),
        (TermKind.PREFERRED_ANTI_AFFINITY, -5),
    ]
    assert terms.for_other_pods == terms.preferred


def test_an_invalid_term_empties_its_kind_and_leaves_the_others() -> None:
    affinity = {
        "podAffinity": {REQUIRED: [term(), term(labelSelector=BROKEN)]},
        "podAntiAffinity": {REQUIRED: [term()]},
    }
    terms = pod_terms(pod(affinity=affinity))
    assert terms.required_affinity == ()
    assert len(terms.required_anti_affinity) == 1
    (error,) = terms.errors
    assert error.startswith("requiredAffinityTerms: matchExpressions[0].operator")


def test_terms_are_compiled_once_for_pods_of_one_kind() -> None:
    affinity = {"podAffinity": {REQUIRED: [term()]}}
    a, b, elsewhere = pod("a", affinity=affinity), pod("b", affinity=affinity), pod(namespace="x", affinity=affinity)
    assert pod_terms(a) is pod_terms(b)
    assert pod_terms(a) is not pod_terms(elsewhere)


def test_a_pod_without_pod_affinity_has_no_terms() -> None:
    assert pod_terms(pod(affinity={"nodeAffinity": {}})) is pod_terms(pod()) == PodTerms()


def test_of_too_many_terms_none_counts() -> None:
    terms = near(*(term(topologyKey=f"z{number}") for number in range(501)))
    assert terms == PodTerms(errors=("spec.affinity: 1002 demands of pods, at most 1000 are decided on",))
