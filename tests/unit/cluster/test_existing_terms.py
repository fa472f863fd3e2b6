from __future__ import annotations

import tracemalloc
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster import existing_terms
from podium.cluster.affinity_terms import PodTerm, TermKind, pod_terms
from podium.cluster.existing_terms import ExistingTerms, IncomingPod, _candidates
from podium.objects.core import Pod
from tests.builders import pod
from tests.unit.cluster.changing_clusters import REQUIRED, ChangingCluster, histories, labels, namespaces, steps

newcomers = st.builds(IncomingPod, namespaces, labels, labels)
kinds = st.frozensets(st.sampled_from(TermKind), min_size=1)


def recount(
    cluster: ChangingCluster, incoming_pod: IncomingPod, kinds: frozenset[TermKind]
) -> dict[PodTerm, list[int]]:
    counts: dict[PodTerm, list[int]] = {}
    for row, item in cluster.pods():
        for pod_term in pod_terms(item).for_other_pods:
            if pod_term.kind in kinds and incoming_pod.is_selected_by(pod_term.term):
                counts.setdefault(pod_term, [0] * len(cluster.snapshot.nodes))[row] += 1
    return counts


def assert_true(cluster: ChangingCluster, incoming_pod: IncomingPod, kinds: frozenset[TermKind]) -> None:
    counts_by_term = cluster.snapshot.existing_terms.matching(incoming_pod, kinds)
    terms_counted = recount(cluster, incoming_pod, kinds)
    assert {pod_term: counts.tolist() for pod_term, counts in counts_by_term.items()} == terms_counted
    by_value = cluster.snapshot.existing_terms.matching_by_value(incoming_pod, kinds, cluster.snapshot.label_column)
    assert {pod_term: counts.tolist() for pod_term, counts in by_value} == {
        pod_term: cluster.by_value(pod_term.term.topology_key, counts) for pod_term, counts in terms_counted.items()
    }


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(history=histories, incoming_pod=newcomers, term_kinds=kinds)
def test_terms_found_are_those_of_a_recount_whatever_has_happened(history, incoming_pod, term_kinds) -> None:
    cluster = ChangingCluster.empty()
    for kind, index, item in history:
        if kind == "ask":
            assert_true(cluster, incoming_pod, term_kinds)
        else:
            cluster.take(kind, index, item)
    assert_true(cluster, incoming_pod, term_kinds)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(
    earlier_changes=histories,
    later_changes=st.lists(st.tuples(st.sampled_from(("base", "fork", "twin")), steps), max_size=10),
    incoming_pod=newcomers,
    term_kinds=kinds,
    changes_max=st.sampled_from((0, 1, 4096)),
    line=st.sampled_from((1, 32)),
)
def test_a_fork_finds_its_own_terms_and_no_others(
    earlier_changes, later_changes, incoming_pod, term_kinds, changes_max, line
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(existing_terms, "CHANGES_KEPT", changes_max)
        patch.setattr(existing_terms, "LINE_MAX", line)
        base = ChangingCluster.empty()
        clusters = base.with_forks(earlier_changes)
    for name, (kind, index, item) in later_changes:
        if kind == "ask":
            assert_true(clusters[name], incoming_pod, term_kinds)
        elif name == "twin" or not kind.endswith("node"):  # a fork is good until a node of its original changes
            clusters[name].take(kind, index, item)
    for cluster in clusters.values():
        assert_true(cluster, incoming_pod, term_kinds)


def shunning(name: str, app: str) -> Pod:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}}
    return pod(name, affinity={"podAntiAffinity": {REQUIRED: [term]}})


NEWCOMER = IncomingPod("default", {"app": "a"}, {})
ANTI = (TermKind.REQUIRED_ANTI_AFFINITY,)


def test_pods_with_the_same_term_are_one_answer() -> None:
    terms = ExistingTerms([{}, {}])
    for row, name in ((0, "p1"), (0, "p2"), (1, "p3")):
        terms.add(row, shunning(name, "a"))
    terms.add(0, shunning("p4", "b"))
    (counts,) = terms.matching(NEWCOMER, ANTI).values()
    assert counts.tolist() == [2, 1]


def test_only_terms_that_the_newcomer_could_satisfy_are_looked_at() -> None:
    terms = ExistingTerms([{}])
    for index in range(5):
        terms.add(0, shunning(f"p{index}", f"app-{index}"))
    (kind,) = ANTI
    assert list(_candidates(terms._buckets[kind], IncomingPod("default", {"app": "app-3"}, {}))) == [
        terms._pods_with_term[pod_terms(shunning("p3", "app-3")).for_other_pods[0]]
    ]
    assert list(_candidates(terms._buckets[kind], IncomingPod("other", {"app": "app-3"}, {}))) == []


def test_columns_are_kept_for_some_terms_only(monkeypatch) -> None:
    monkeypatch.setattr(existing_terms, "COLUMNS_MAX", 1)
    terms = ExistingTerms([{}])
    for app in "ab":
        terms.add(0, shunning(app, app))
        terms.add(0, shunning(f"{app}2", app))
    for app in "aba":
        (counts,) = terms.matching(IncomingPod("default", {"app": app}, {}), ANTI).values()
        assert counts.tolist() == [2]
    assert [entry.column is None for entry in terms._pods_with_term.values()] == [False, True]


def test_pods_that_are_long_gone_leave_no_specs_behind() -> None:
    terms = ExistingTerms([{}])
    specs = weakref.WeakValueDictionary()
    for number in range(2000):
        repelled_pod = shunning("p", f"app-{number}")
        specs[number] = repelled_pod.spec
        terms.add(0, repelled_pod)
        terms.remove(0, repelled_pod)
    assert len(specs) < 300


@pytest.mark.parametrize(("values", "names"), [(2, 2), (17, 1), (1, 17), (5_000, 500)])
def test_a_term_with_many_values_or_namespaces_is_found_by_few(values: int, names: int) -> None:
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": [f"v{n}" for n in range(values)]}]}
    term = {"topologyKey": "zone", "labelSelector": selector, "namespaces": [f"n{n}" for n in range(names)]}
    terms, carrier = ExistingTerms([{}]), pod("a", affinity={"podAntiAffinity": {REQUIRED: [term]}})
    kinds = [TermKind.REQUIRED_ANTI_AFFINITY]
    near_pod, far_pod = IncomingPod(f"n{names - 1}", {"app": "v0"}, {}), IncomingPod("n0", {"app": "x"}, {})
    tracemalloc.start()
    terms.add(0, carrier)
    traced_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert traced_bytes < 1_000 * (values + names) + 50_000
    assert len(terms.matching(near_pod, kinds)) == 1
    assert terms.matching(far_pod, kinds) == {}
    terms.remove(0, carrier)
    assert terms.matching(near_pod, kinds) == {}
