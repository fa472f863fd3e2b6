from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster import Snapshot, pod_counts
from podium.cluster.pod_counts import ForkedPodCounts, PodCounts, PodQuery
from podium.objects.core import Pod
from podium.objects.meta import LabelSelector
from podium.objects.selectors import EVERYTHING, compile_selector, selector_of_labels
from tests.builders import pod
from tests.unit.cluster.changing_clusters import ChangingCluster, histories, namespaces, selectors, steps

WEB = PodQuery(None, selector_of_labels({"app": "web"}))

queries = st.builds(
    PodQuery,
    st.one_of(st.none(), st.frozensets(namespaces)),
    selectors.map(lambda selector: compile_selector(None if selector is None else _selector(selector))),
    st.booleans(),
)


def _selector(content: object) -> LabelSelector:
    return msgspec.convert(content, LabelSelector)


def web(name: str, **kwargs) -> Pod:
    return pod(name, labels={"app": "web"}, **kwargs)


def cluster_of(*pods: tuple[int, Pod]) -> ChangingCluster:
    cluster = ChangingCluster.empty()
    for index, item in pods:
        cluster.take("come", index, item)
    return cluster


def counts_of(snapshot: Snapshot, query: PodQuery) -> list[int]:
    return snapshot.pod_counts.matching(query).tolist()[:3]


def recount(cluster: ChangingCluster, query: PodQuery) -> list[int]:
    counts = [0] * len(cluster.snapshot.nodes)
    for row, item in cluster.pods():
        counts[row] += query.takes(item.metadata.namespace, item.metadata.labels, item.is_terminating)
    return counts


def assert_true(cluster: ChangingCluster, queries: list[PodQuery]) -> None:
    for query in queries:
        by_row = recount(cluster, query)
        assert cluster.snapshot.pod_counts.matching(query).tolist() == by_row, query
        column = cluster.snapshot.label_column("zone")
        by_value = cluster.snapshot.pod_counts.matching_by_value(query, column)
        assert by_value.tolist() == cluster.by_value("zone", by_row), query


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(history=histories, pod_queries=st.lists(queries, min_size=1, max_size=3))
def test_counters_are_what_a_recount_gives_whatever_has_happened(history, pod_queries) -> None:
    cluster = ChangingCluster.empty()
    for kind, index, item in history:
        if kind == "ask":
            assert_true(cluster, pod_queries[:1])
        else:
            cluster.take(kind, index, item)
    assert_true(cluster, pod_queries)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(
    earlier_changes=histories,
    later_changes=st.lists(st.tuples(st.sampled_from(("base", "fork", "twin")), steps), max_size=10),
    pod_queries=st.lists(queries, min_size=1, max_size=2),
    counters_max=st.sampled_from((0, 1, 4096)),
    line=st.sampled_from((1, 32)),
)
def test_a_fork_sees_its_own_changes_and_no_others(
    earlier_changes, later_changes, pod_queries, counters_max, line
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pod_counts, "CHANGES_KEPT", counters_max)
        patch.setattr(pod_counts, "LINE_MAX", line)
        base = ChangingCluster.empty()
        clusters = base.with_forks(earlier_changes)
    for name, (kind, index, item) in later_changes:
        if kind == "ask":
            assert_true(clusters[name], pod_queries[:1])
        elif name == "twin" or not kind.endswith("node"):  # a fork is good until a node of its original changes
            clusters[name].take(kind, index, item)
    for cluster in clusters.values():
        assert_true(cluster, pod_queries)


def test_pods_going_away_count_only_where_asked_for() -> None:
    cluster = cluster_of((0, web("a")), (0, web("b", terminating=True)))
    assert counts_of(cluster.snapshot, WEB) == [2, 0, 0]
    assert counts_of(cluster.snapshot, WEB._replace(include_terminating=False)) == [1, 0, 0]


def test_a_pod_that_starts_to_go_away_or_changes_labels_counts_as_it_is_now() -> None:
    cluster = cluster_of((1, web("a")))
    staying = WEB._replace(include_terminating=False)
    assert counts_of(cluster.snapshot, staying) == [0, 1, 0]
    cluster.take("change", 1, web("a", terminating=True))
    assert counts_of(cluster.snapshot, staying) == [0, 0, 0]
    cluster.take("change", 1, pod("a", labels={"app": "db"}))
    assert counts_of(cluster.snapshot, WEB) == [0, 0, 0]


def test_pods_of_other_namespaces_do_not_count() -> None:
    cluster = cluster_of((0, web("a")), (1, web("b", namespace="other")))
    assert counts_of(cluster.snapshot, WEB._replace(namespaces=frozenset({"other"}))) == [0, 1, 0]
    assert counts_of(cluster.snapshot, WEB._replace(namespaces=frozenset())) == [0, 0, 0]
    assert counts_of(cluster.snapshot, PodQuery(None, EVERYTHING)) == [1, 1, 0]


def test_a_question_asked_again_is_not_counted_again() -> None:
    cluster = cluster_of((0, web("a")))
    first = cluster.snapshot.pod_counts.matching(WEB)
    cluster.take("come", 0, web("b"))
    assert cluster.snapshot.pod_counts.matching(WEB) is first
    assert first[0] == 2


def test_the_first_question_looks_at_sets_of_labels_and_at_no_pod(monkeypatch) -> None:
    cluster = cluster_of(*((0, web(f"web-{number}")) for number in range(5)))
    monkeypatch.setattr(cluster.snapshot.pod_counts, "_pods", [None])
    assert counts_of(cluster.snapshot, WEB) == [5]


def test_the_question_not_asked_for_the_longest_is_forgotten(monkeypatch) -> None:
    monkeypatch.setattr(pod_counts, "COUNTERS_MAX", 2)
    counts = PodCounts([{"a": web("a")}])
    old, recent, new = (PodQuery(frozenset({name}), WEB.selector) for name in ("default", "other", "third"))
    first = counts.matching(old)
    counts.matching(recent)
    assert counts.matching(old) is first
    counts.matching(new)
    assert counts.statistics() == {"counters": 2, "groups": 1}
    assert counts.matching(old) is first
    counts.add(0, web("b"))
    assert counts.matching(old).tolist() == [2]
    assert counts.matching(recent).tolist() == [0]


def test_labels_that_no_pod_has_any_more_are_forgotten() -> None:
    cluster = cluster_of((0, web("a")))
    assert counts_of(cluster.snapshot, WEB) == [1, 0, 0]
    cluster.take("go", 0, web("a"))
    assert isinstance(cluster.snapshot.pod_counts, PodCounts)
    assert cluster.snapshot.pod_counts.statistics() == {"counters": 1, "groups": 0}


def test_a_fork_costs_nothing_until_it_is_asked() -> None:
    cluster = cluster_of((0, web("a")))
    fork = cluster.fork()
    fork.take("come", 1, web("b"))
    assert isinstance(fork.snapshot.pod_counts, ForkedPodCounts)
    assert fork.snapshot.pod_counts._counts == {}
    assert counts_of(fork.snapshot, WEB) == [1, 1, 0]
    assert counts_of(cluster.snapshot, WEB) == [1, 0, 0]
