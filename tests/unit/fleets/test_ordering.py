import math

import pytest

from podium.engine.errors import ClusterError
from podium.fleets.ordering import Prices
from tests.manifests import node, pod
from tests.unit.fleets.fleets import ask
from tests.workload_manifests import workload

TYPE = "node.kubernetes.io/instance-type"


def _running(cpu, memory="1Gi"):
    return pod("runs", cpu, memory=memory, node="n1", scheduler="default-scheduler")


def _names(answer):
    return [cluster.cluster for cluster in answer.fits]


def test_the_emptiest_is_the_one_whose_scarcest_resource_is_requested_least():
    members = {
        "cpu-is-scarce": [node("n1", "10", memory="64Gi"), _running("7")],
        "memory-is-scarce": [node("n1", "10", memory="64Gi"), _running("1", "60Gi")],
        "empty": [node("n1", "10", memory="64Gi")],
    }
    answer = ask(members, workload("Job", cpu="1"))
    assert _names(answer) == ["empty", "cpu-is-scarce", "memory-is-scarce"]
    assert [round(cluster.load, 1) for cluster in answer.fits] == [10.0, 80.0, 93.8]


def test_equal_clusters_come_by_name():
    members = {name: [node("n1")] for name in ("c", "a", "b")}
    assert _names(ask(members, workload("Job"))) == ["a", "b", "c"]


def test_enough_clusters_end_the_question_and_the_others_are_named():
    members = {name: [node("n1")] for name in ("a", "b", "c")} | {"full": [node("n1", "1"), _running("1")]}
    answer = ask(members, workload("Job"), clusters_max=1)
    assert (_names(answer), answer.untried) == (["a"], ["b", "c", "full"])


def test_the_cheapest_is_the_one_whose_nodes_cost_least_for_what_the_pods_take():
    members = {
        "dear": [node("n1", "10", labels={TYPE: "big"})],
        "cheap": [node("n1", "10", labels={TYPE: "small"}), _running("5")],
        "unknown": [node("n1", "10", labels={TYPE: "odd"})],
    }
    answer = ask(members, workload("Job", cpu="5"), order="cheapest", prices={"big": 4, "small": 1.0})
    assert _names(answer) == ["cheap", "dear", "unknown"]
    assert [cluster.price for cluster in answer.fits] == [0.5, 2.0, None]


def test_all_are_tried_before_the_cheapest_is_known():
    members = {"empty": [node("n1", labels={TYPE: "big"})], "fuller": [node("n1", "4", labels={TYPE: "small"})]}
    answer = ask(members, workload("Job"), order="cheapest", prices={"big": 9, "small": 1}, clusters_max=1)
    assert (_names(answer), answer.untried) == (["fuller"], ["empty"])


def test_a_price_of_one_cluster_and_one_for_any_type_count():
    prices = Prices({"east/big": 1, "east/*": 2, "big": 3, "*": 4})
    from podium.engine.manifests import read_manifest
    from podium.objects.resource_types import NODES

    big = read_manifest(node("n1", labels={TYPE: "big"}), NODES)
    plain = read_manifest(node("n2"), NODES)
    assert [prices.of_node(*pair) for pair in (("east", big), ("east", plain), ("west", big), ("west", plain))] == [
        1,
        2,
        3,
        4,
    ]


@pytest.mark.parametrize("price", [-1, math.nan, math.inf, "1", True, None])
def test_a_price_that_is_none_is_refused(price):
    with pytest.raises(ClusterError, match="prices: big: expected a number from 0 up"):
        Prices({"big": price})
