"""The estimate is what the scheduler binds when that many replicas come, and one more stays pending."""

import pytest

from podium.estimator.accurate import replica_of
from tests.builders import ZONE_LABEL, node, pod
from tests.unit.estimator.members import asking, claim
from tests.unit.estimator.trials import estimate, ours, replica, still


def test_hostname_anti_affinity_lets_one_replica_onto_each_node():
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    ]}}  # fmt: skip
    nodes = [node(f"n{index}", labels={"kubernetes.io/hostname": f"n{index}"}) for index in range(3)]
    web_replica = replica(labels={"app": "web"}, affinity=apart)
    assert estimate(still(*nodes), web_replica) == 3
    assert estimate(still(*nodes, pod("old", node="n0", labels={"app": "web"})), web_replica) == 2


def test_spreading_stops_where_one_zone_is_full():
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE_LABEL,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    web_replica = replica(cpu="1", labels={"app": "web"}, spec={"topologySpreadConstraints": [spread]})
    assert estimate(still(node("n1", cpu="2", zone="a"), node("n2", cpu="9", zone="b")), web_replica) == 5


def test_host_port_takes_a_node_each():
    assert estimate(still(node("n1"), node("n2")), replica(host_ports=[8080])) == 2


def test_sidecars_and_pod_level_requests_count_in_full():
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
    running = pod("run", node="n1", cpu="1", spec={"initContainers": [sidecar]})
    assert estimate(still(node("n1", cpu="8"), running), replica(cpu="1")) == 6
    assert estimate(still(node("n1", cpu="8")), replica(spec={"resources": {"requests": {"cpu": "4"}}})) == 2


def test_pods_that_wait_take_their_place_first_unless_they_are_gated_or_too_big():
    waiting = [replica("a", cpu="2"), replica("b", cpu="64"), replica("c", cpu="2", gates=["g"])]
    assert estimate(still(node("n1", cpu="8")), replica(cpu="1"), waiting) == 6


def test_gated_workload_is_not_bound_at_all():
    assert estimate(still(node("n1")), replica(cpu="1", gates=["g"])) == 0


def test_cluster_is_left_as_it_was():
    cluster = still(node("n1", cpu="4"))
    assert [estimate(cluster, replica(host_ports=[80]), [replica("a", cpu="1")]) for _ in range(2)] == [1, 1]
    assert cluster.engine.cache.statistics()["assumed_pods"] == 0


def test_counting_stops_at_the_most_that_was_asked_for():
    nodes = [node(f"n{index}") for index in range(5)]
    assert estimate(still(*nodes), replica(host_ports=[80]), replicas_max=3) == 3


def test_cluster_without_nodes_takes_nothing():
    assert estimate(still(), replica()) == 0


@pytest.mark.parametrize(("requirements", "answer"), [(None, 110), (asking("1"), 4)])
def test_requirements_stand_for_a_pod(requirements, answer):
    replica_pod = replica_of(requirements)
    assert estimate(still(node("n1", cpu="4")), ours(replica_pod)) == answer


def test_claim_of_requirements_holds():
    replica_pod = ours(replica_of(asking("1", claim=claim(node_selector={"disk": "ssd"}))))
    nodes = node("n1", cpu="4", labels={"disk": "ssd"}), node("n2", cpu="4")
    assert estimate(still(*nodes), replica_pod) == 4
