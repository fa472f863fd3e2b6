import pytest

from podium.sandbox.controllers.daemon_nodes import daemon_spec, for_node, may_stay, should_run, target_node
from tests.manifests import node

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TEAM = {"key": "team", "value": "a"}


def _affinity(*terms):
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}


def _expression(operator, *values, key="size"):
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def _runs(spec, **fields):
    return should_run(daemon_spec(spec), node("n1", **fields))


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_daemon_keeps_off_nodes_that_it_does_not_tolerate(effect):
    taints = [{**TEAM, "effect": effect}]
    assert not _runs({}, taints=taints)
    assert _runs({"tolerations": [{"key": "team", "operator": "Exists"}]}, taints=taints)
    assert _runs({"tolerations": [{**TEAM, "effect": effect}]}, taints=taints)
    assert not _runs({"tolerations": [{**TEAM, "value": "b"}]}, taints=taints)
    assert not _runs({"tolerations": [{"key": "team", "operator": "Gt", "value": "1"}]}, taints=taints)


def test_a_daemon_stays_on_a_node_that_new_ones_keep_off():
    for effect, stays in (("NoSchedule", True), ("NoExecute", False)):
        assert may_stay(daemon_spec({}), node("n1", taints=[{**TEAM, "effect": effect}])) is stays


def test_troubles_of_nodes_are_tolerated_and_no_network_by_hosts_pods_only():
    cordoned = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    assert _runs({}, taints=cordoned)
    lonely = [{"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"}]
    assert not _runs({}, taints=lonely)
    assert _runs({"hostNetwork": True}, taints=lonely)


@pytest.mark.parametrize(
    ("term", "selects"),
    [
        (_expression("In", "5"), True),
        (_expression("In", "6"), False),
        (_expression("NotIn", "6"), True),
        (_expression("Exists"), True),
        (_expression("DoesNotExist"), False),
        (_expression("Gt", "4"), True),
        (_expression("Gt", "5"), False),
        (_expression("Lt", "6"), True),
        (_expression("Gt", "many"), False),
        (_expression("Near", "6"), False),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}, True),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}, False),
        ({}, False),
    ],
)
def test_required_affinity_selects_the_nodes(term, selects):
    assert bool(_runs(_affinity(term), labels={"size": "5"})) is selects


def test_node_name_and_selector_select_the_nodes():
    assert _runs({"nodeName": "n1"})
    assert not _runs({"nodeName": "n2"})
    assert _runs({"nodeSelector": {"size": "5"}}, labels={"size": "5"})
    assert not _runs({"nodeSelector": {"size": "5"}})


def test_the_spec_for_a_node_names_it_in_place_of_what_the_template_requires():
    soft = [{"weight": 1, "preference": {}}]
    spec = _affinity(_expression("Exists"))
    spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = soft
    daemon_spec = for_node(spec, "n1")
    assert target_node({"spec": daemon_spec}) == "n1"
    affinity = daemon_spec["affinity"]["nodeAffinity"]
    assert affinity["preferredDuringSchedulingIgnoredDuringExecution"] == soft
    assert "matchExpressions" not in affinity[REQUIRED]["nodeSelectorTerms"][0]
    assert target_node({"spec": {**daemon_spec, "nodeName": "n2"}}) == "n2"
    assert target_node({"spec": {}}) == ""
