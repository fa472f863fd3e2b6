"""Capacity is what then binds: that many copies find a node in a fresh cluster, and one more does not."""

import pytest

from podium.engine import ClusterError
from podium.framework.contract.status import ScheduleError
from podium.insight import Cluster
from tests.manifests import HOSTNAME, ZONE, node, pod
from tests.workload_manifests import workload

SCHEDULER = "default-scheduler"


def web(name="web", cpu="1", **fields):
    return pod(name, cpu, scheduler=SCHEDULER, **fields)


def test_limit_names_the_resource_or_the_rule_of_each_node():
    tainted = node("n3", "9", taints=[{"key": "team", "value": "a", "effect": "NoSchedule"}])
    cluster = Cluster.load([node("n1", "2"), node("n2", "9", pods="3"), tainted, node("n4", unschedulable=True)])
    answer = cluster.capacity(web())
    assert {node.node: (node.fits, node.limit) for node in answer.nodes} == {
        "n1": (2, "Insufficient cpu"),
        "n2": (3, "Too many pods"),
        "n3": (0, "node(s) had untolerated taint(s) (untolerated taint team=a:NoSchedule)"),
        "n4": (0, "node(s) were unschedulable"),
    }
    assert answer.limits["Insufficient cpu"] == 1


def test_copies_that_affect_each_other_are_placed_one_by_one():
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    nodes = [node("n1", "2", labels={ZONE: "a"}), node("n2", "9", labels={ZONE: "b"})]
    answer = Cluster.load(nodes).capacity(web(labels={"app": "web"}, topologySpreadConstraints=[spread]))
    assert (answer.fits, answer.zones) == (5, {"a": 2, "b": 3})
    assert answer.limits == {
        "Insufficient cpu": 1,
        "node(s) didn't match pod topology spread constraints": 1,
    }


def test_a_dry_run_that_reaches_its_maximum_says_so():
    answer = Cluster.load([node(f"n{index}") for index in range(5)]).capacity(web(host_port=80), most=3)
    assert (answer.fits, answer.is_at_least, answer.as_dict(explain=False)["at_least"]) == (3, True, True)


def test_a_gated_pod_does_not_fit_at_all():
    answer = Cluster.load([node("n1")]).capacity(web(schedulingGates=[{"name": "hold"}]))
    assert (answer.fits, answer.gate) == (0, "waiting for scheduling gates: [hold]")


def test_asking_changes_nothing():
    cluster = Cluster.load([node("n1", "4")])
    assert [cluster.capacity(web(host_port=80)).fits for _ in range(2)] == [1, 1]
    assert cluster.pods == ()


def test_a_cluster_without_nodes_cannot_answer():
    with pytest.raises(ScheduleError, match="no nodes available"):
        Cluster.load([]).capacity(web())


def test_a_profile_that_ignores_resources_places_copies_one_by_one():
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}}],
    }
    answer = Cluster.load([node("n1", "1")], config).capacity(web(cpu="9"), most=20)
    assert (answer.fits, answer.is_at_least) == (20, True)


# ---------------------------------------------------------------- headroom


def test_headroom_is_the_largest_pod_that_still_fits_so_often():
    cluster = Cluster.load([node("n1", "4", memory="8Gi"), node("n2", "6", memory="8Gi")])
    answer = cluster.headroom(web(cpu="1", memory="1Gi"), 4)
    assert (answer.fits, answer.amounts, answer.percent) == (True, {"cpu": "2", "memory": "4Gi"}, 200)


def test_headroom_of_a_pod_that_does_not_fit_so_often_is_smaller_than_the_pod():
    answer = Cluster.load([node("n1", "4")]).headroom(web(cpu="3", memory="1Gi"), 4)
    assert (answer.fits, answer.amounts, answer.percent) == (False, {"cpu": "1"}, 33)


def test_headroom_must_be_asked_for_a_positive_number():
    with pytest.raises(ClusterError, match="got 0"):
        Cluster.load([node("n1")]).headroom(web(), 0)


def test_headroom_is_zero_if_no_size_fits():
    answer = Cluster.load([node("n1")]).headroom(web(nodeSelector={HOSTNAME: "other"}), 1)
    assert (answer.amounts, answer.percent) == ({}, 0)


ONE_DAEMON = "one pod of a DaemonSet for each node"
WITH_QUOTAS = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {"schedulerName": SCHEDULER, "plugins": {"multiPoint": {"enabled": [{"name": "CapacityScheduling"}]}}}
    ],
}


def elastic_quota(cpu):
    bounds = {"cpu": cpu, "memory": "64Gi"}
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "quota", "namespace": "default"},
        "spec": {"min": bounds, "max": bounds},
    }


def test_daemons_fit_on_as_many_nodes_as_their_quota_allows():
    nodes = [node(f"n{number}", "4") for number in range(3)]
    answer = Cluster.load([*nodes, elastic_quota("2")], WITH_QUOTAS).capacity(workload("DaemonSet", "agent"))
    assert answer.fits == 2
    limits = {entry.fits: entry.limit for entry in answer.nodes}
    assert limits[1] == ONE_DAEMON
    assert "quota" in limits[0].lower()


def test_daemons_that_keep_apart_by_zone_fit_once_in_each():
    apart = {"labelSelector": {"matchLabels": {"app": "agent"}}, "topologyKey": ZONE}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    nodes = [node(name, "4", labels={ZONE: zone}) for name, zone in (("n1", "a"), ("n2", "a"), ("n3", "b"))]
    answer = Cluster.load(nodes).capacity(workload("DaemonSet", "agent", pod_spec={"affinity": affinity}))
    assert answer.zones == {"a": 1, "b": 1}


def test_daemons_beside_other_pods_fit_once_on_each_node():
    cluster = Cluster.load([node("n1", "4"), node("n2", "4")])
    daemons, webs = cluster.capacity_together([workload("DaemonSet", "agent"), web()])
    assert {entry.node: entry.fits for entry in daemons.nodes} == {"n1": 1, "n2": 1}
    assert webs.fits == 6
