import pytest

import podium
from tests.manifests import node
from tests.unit.cli.test_divide import DEPLOYMENT, POLICY


@pytest.fixture
def clusters():
    return podium.Clusters.load(
        members={"east": [node("n1", "4", memory="8Gi")], "west": [node("n1", "2", memory="8Gi")]}
    )


def test_a_workload_is_divided_without_karmada(clusters):
    division = clusters.divide([DEPLOYMENT, POLICY])
    assert division
    assert division.replicas == {"east": 4, "west": 2}
    assert {share.cluster: share.why for share in division.shares} == {"east": "takes 4", "west": "takes 2"}


def test_what_does_not_fit_is_false_and_says_why(clusters):
    larger = {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicas": 9}}
    division = clusters.divide([larger, POLICY])
    assert not division
    assert (division.reason, division.replicas) == ("Unschedulable", {})
    assert division.shares[0].remedy == "3 more available replicas"


def test_an_answer_of_a_members_server_counts_instead_of_its_nodes():
    members = {"east": [node("n1", "4", memory="8Gi")], "west": [node("n1", "4", memory="8Gi")]}
    fleet = podium.Clusters.load(members=members, available={"east": 2})
    assert fleet.divide([DEPLOYMENT, POLICY]).available == {"east": 2, "west": 4}


def test_the_member_that_takes_a_whole_workload_is_found(clusters):
    answer = clusters.fit({**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicas": 3}})
    assert answer
    assert answer.best == "east"
    assert set(answer.fits[0].nodes.values()) == {"n1"}
    assert [rejection.cluster for rejection in answer.rejections] == ["west"]


def test_where_no_member_takes_it_the_answer_is_false(clusters):
    answer = clusters.fit(DEPLOYMENT)
    assert (bool(answer), answer.best) == (False, None)
    assert answer.as_dict()["rejected"][0]["placed"] == 4
