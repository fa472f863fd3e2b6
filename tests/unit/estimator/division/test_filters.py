from random import Random

import pytest
from msgspec import convert

from podium.estimator.division.attempts import Options, divide
from podium.estimator.division.bindings import ResourceBinding
from podium.estimator.division.filters import filter_clusters
from tests.unit.estimator.division.fleets import DUPLICATED, binding, cluster, divide_into, question

TAINT = {"key": "spot", "value": "yes", "effect": "NoSchedule"}
MISMATCH = "cluster(s) did not match the placement cluster affinity constraint"


def _reasons(clusters, spec, group="", neighbours=None):
    return {name: list(texts) for name, texts in filter_clusters(clusters, spec, group, neighbours).reasons.items()}


@pytest.mark.parametrize(
    ("member", "placement", "reason"),
    [
        (cluster("m", apis=[]), {}, "cluster(s) did not have the API resource"),
        (cluster("m", taints=[TAINT]), {}, "cluster(s) had untolerated taint {spot=yes:NoSchedule}"),
        (cluster("m", taints=[{**TAINT, "effect": "PreferNoSchedule"}]), {}, None),
        (cluster("m", taints=[TAINT]), {"clusterTolerations": [{"key": "spot", "operator": "Exists"}]}, None),
        (cluster("m"), {"clusterAffinity": {"clusterNames": ["other"]}}, MISMATCH),
        (cluster("m"), {"clusterAffinity": {"exclude": ["m"]}}, MISMATCH),
        (cluster("m"), {"spreadConstraints": [{"spreadByField": "zone"}]}, "cluster(s) did not have zones property"),
        (cluster("m"), {"spreadConstraints": [{"spreadByLabel": "rack"}]}, None),
        (cluster("m"), {"clusterAffinities": [{"affinityName": "g", "clusterNames": ["other"]}]}, MISMATCH),
    ],
)
def test_a_cluster_is_rejected_with_upstreams_reason(member, placement, reason):
    spec = binding(1, DUPLICATED, placement=placement)
    assert _reasons([member], spec, "g") == ({} if reason is None else {"m": [reason]})


def test_a_cluster_of_the_previous_result_keeps_it_in_spite_of_taints_and_apis():
    spec = binding(1, DUPLICATED, {"m": 0})
    assert _reasons([cluster("m", apis=[], taints=[TAINT])], spec) == {}


def test_eviction_and_deletion_leave_a_cluster_out():
    spec = binding(1, DUPLICATED, gracefulEvictionTasks=[{"fromCluster": "a"}])
    leaving = convert({"metadata": {"name": "b", "deletionTimestamp": "2026-01-01T00:00:00Z"}}, type(cluster("b")))
    result = filter_clusters([cluster("a"), leaving], spec, "")
    assert result.text() == "0/2 clusters are available: 1 cluster(s) is in the process of eviction."
    assert filter_clusters([leaving], spec, "").text() == "0/1 clusters are available: no cluster exists."


def test_reasons_are_sorted_as_texts_with_their_counts():
    clusters = [cluster(f"t{number}", taints=[TAINT]) for number in range(10)] + [
        cluster(f"x{n}", apis=[]) for n in "ab"
    ]
    text = filter_clusters(clusters, binding(1, DUPLICATED), "").text()
    assert text.startswith("0/12 clusters are available: 10 cluster(s) had untolerated taint {spot=yes:NoSchedule}, 2 ")


def test_seed_draws_which_of_several_reasons_is_given():
    spec = binding(1, DUPLICATED, gracefulEvictionTasks=[{"fromCluster": "a"}])
    clusters = [cluster("a", taints=[TAINT])]
    outcome = divide(question(spec, clusters=clusters))
    assert outcome.is_message_random
    texts = {divide_into(spec, clusters=clusters, random=Random(seed)) for seed in range(9)}
    assert len(texts) == 2


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ({"labelSelector": {"matchLabels": {"tier": "gold"}}}, True),
        ({"labelSelector": {}}, True),
        ({"labelSelector": {"matchExpressions": [{"key": "tier", "operator": "Near"}]}}, False),
        ({"fieldSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": ["eu"]}]}}, True),
        ({"fieldSelector": {"matchExpressions": [{"key": "provider", "operator": "NotIn", "values": ["x"]}]}}, True),
        ({"fieldSelector": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z2", "z9"]}]}}, True),
        ({"fieldSelector": {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["z2"]}]}}, False),
        ({"fieldSelector": {"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}}, False),
        ({"fieldSelector": {"matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["1"]}]}}, False),
        ({"fieldSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": []}]}}, False),
        ({"fieldSelector": {}}, True),
    ],
)
def test_affinity_selects_by_labels_and_fields(selector, matches):
    member = cluster("m", {"tier": "gold"}, region="eu", zones=["z1", "z2"])
    spec = binding(1, DUPLICATED, placement={"clusterAffinity": selector})
    assert (_reasons([member], spec) == {}) == matches


def _neighbour(name, clusters, **groups):
    spec = {"workloadAffinityGroups": groups, "clusters": [{"name": name} for name in clusters]}
    return convert({"metadata": {"namespace": "shop", "name": name}, "spec": spec}, ResourceBinding)


@pytest.mark.parametrize(
    ("groups", "feasible"),
    [({"affinityGroup": "g"}, {"a"}), ({"antiAffinityGroup": "g"}, {"b", "c"}), ({}, {"a", "b", "c"})],
)
def test_workloads_of_a_group_share_clusters_or_avoid_each_other(groups, feasible):
    neighbours = [
        _neighbour("db-deployment", ["a"], affinityGroup="g", antiAffinityGroup="g"),
        _neighbour("new-deployment", [], affinityGroup="g"),
        # The workload's own binding.
        _neighbour("web-deployment", ["b"], affinityGroup="g", antiAffinityGroup="g"),
    ]
    spec = binding(1, DUPLICATED, workloadAffinityGroups=groups)
    clusters = [cluster(name) for name in "abc"]
    group_question = question(spec, clusters=clusters, neighbours=neighbours, options=Options(workload_affinity=True))
    assert {target.name for target in divide(group_question).clusters} == feasible
    without_gate = question(spec, clusters=clusters, neighbours=neighbours)
    assert {target.name for target in divide(without_gate).clusters} == {"a", "b", "c"}
