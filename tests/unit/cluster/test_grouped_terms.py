from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from podium.cluster.affinity_term import AffinityTerm, compile_term
from podium.cluster.affinity_terms import pod_terms
from podium.cluster.grouped_terms import KEYS_MAX, grouped_terms
from podium.objects.affinity import PodAffinityTerm
from podium.objects.core import Pod
from podium.objects.selectors import EVERYTHING

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def term(**fields: Any) -> PodAffinityTerm:
    return msgspec.convert(
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, **fields}, PodAffinityTerm
    )


def running(count: int, *extra_terms: dict[str, Any]) -> Pod:
    """A pod with so many anti-affinity terms, and these."""
    terms = [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": f"a{n}"}}} for n in range(count)]
    spec = {"nodeName": "n1", "affinity": {"podAntiAffinity": {REQUIRED: [*terms, *extra_terms]}}}
    return msgspec.convert({"metadata": {"name": "x", "namespace": "ns"}, "spec": spec}, Pod)


def means(terms: tuple[AffinityTerm, ...], labels: dict[str, str], namespace: str = "ns") -> set[str]:
    return {term.topology_key for term in terms if term.matches(namespace, labels, {"team": namespace})}


@pytest.mark.parametrize("count", [1_001, 12_000])
def test_each_of_very_many_terms_is_heeded(count: int) -> None:
    terms = pod_terms(running(count))
    assert terms.not_enforced is None
    assert [pod_term.term for pod_term in terms.for_other_pods] == list(terms.required_anti_affinity)
    for number in (0, 999, count - 1):
        assert means(terms.required_anti_affinity, {"app": f"a{number}", "more": "labels"}) == {"zone"}
    assert means(terms.required_anti_affinity, {"app": f"a{count}"}) == set()
    assert means(terms.required_anti_affinity, {"app": "a1"}, "elsewhere") == set()


def test_terms_of_another_topology_are_another_term() -> None:
    groups, not_enforced = grouped_terms([term(), term(topologyKey="host"), term(topologyKey="host")], "ns")
    assert not_enforced is None
    assert means(groups, {"app": "web"}) == {"zone", "host"}
    assert len(groups) == 2


SELECTORS: list[dict[str, Any] | None] = [
    None,
    {},
    {"matchLabels": {"app": "web"}},
    {"matchLabels": {"app": "web", "tier": "1"}},
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]},
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["db"]}, {"key": "tier", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
]
NAMESPACES: list[dict[str, Any]] = [
    {},
    {"namespaces": ["a", "b"]},
    {"namespaceSelector": {}},
    {"namespaceSelector": {"matchLabels": {"team": "a"}}},
    {"namespaces": ["b"], "namespaceSelector": {"matchLabels": {"team": "a"}}},
]


def test_a_group_means_what_any_of_its_terms_means() -> None:
    random = Random(1)
    pods = [
        (namespace, {key: value for key, value in (("app", app), ("tier", tier)) if value})
        for namespace in ("ns", "a", "b")
        for app in ("", "web", "db")
        for tier in ("", "1", "2")
    ]
    for _ in range(300):
        documents = [
            term(labelSelector=random.choice(SELECTORS), **random.choice(NAMESPACES))
            for _ in range(random.randrange(1, 4))
        ]
        (group,), not_enforced = grouped_terms(documents, "ns")
        assert not_enforced is None
        apart = [compile_term(document, "ns") for document in documents]
        for namespace, labels in pods:
            is_match = any(affinity_term.matches(namespace, labels, {"team": namespace}) for affinity_term in apart)
            assert group.matches(namespace, labels, {"team": namespace}) is is_match, (documents, namespace, labels)


def test_an_invalid_term_is_named_and_leaves_the_others() -> None:
    invalid = {"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}
    for count in (1, 2_000):
        terms = pod_terms(
            running(count, invalid, {"topologyKey": "zone", "labelSelector": {"matchLabels": {"b": "c"}}})
        )
        assert terms.not_enforced is not None
        assert (
            terms.not_enforced.path == f"spec.affinity.podAntiAffinity.{REQUIRED}[{count}].matchExpressions[0].operator"
        )
        affinity_terms = tuple(pod_term.term for pod_term in terms.for_other_pods)
        assert means(affinity_terms, {"b": "c"}) == means(affinity_terms, {"app": "a0"}) == {"zone"}


def test_a_pod_with_more_topology_keys_than_any_node_has_is_not_heeded_in_full() -> None:
    _, not_enforced = grouped_terms([term(topologyKey=f"k{number}") for number in range(KEYS_MAX + 1)], "ns")
    assert not_enforced is not None
    assert str(not_enforced).endswith(f"[{KEYS_MAX}].topologyKey: more than {KEYS_MAX} different keys")


def test_a_group_equals_only_itself() -> None:
    (first,), _ = grouped_terms([term()], "ns")
    (second,), _ = grouped_terms([term()], "ns")
    assert first != second
    assert {first: 1, second: 2}[first] == 1
    assert first != AffinityTerm("zone", EVERYTHING, frozenset(), EVERYTHING)
