"""Questions whose time is up say what they have found, and that it is not all."""

from __future__ import annotations

import pytest

from podium.insight import Cluster
from podium.insight.steps import AddNodes, carry_out_steps
from podium.insight.what_if import outcome_of
from podium.lib.time_limit import UNLIMITED
from tests.looks import after_looks
from tests.manifests import node, pod

TAINTS = [{"key": key, "effect": "NoSchedule"} for key in ("a", "b")]


def web(name="web", cpu="1", **fields):
    return pod(name, cpu, scheduler="default-scheduler", **fields)


def tainted_nodes(count=20):
    return Cluster.load([node(f"n{number}", taints=TAINTS) for number in range(count)])


@pytest.mark.long
def test_fixes_found_in_time_are_the_first_of_all_and_partial():
    every = tainted_nodes().fixes(web())
    assert not every.is_partial
    counts = set()
    for looks in range(40):
        limit = after_looks(looks)
        answer = tainted_nodes().fixes(web(), limit=limit)
        assert answer.fixes == every.fixes[: len(answer.fixes)]
        assert answer.is_partial == limit.is_noticed == (answer.as_dict().get("partial") is True)
        assert answer.is_partial or answer == every
        counts.add(len(answer.fixes))
    assert {0, 1} <= counts
    assert "has not ended" in tainted_nodes().fixes(web(), limit=after_looks(0)).text


def test_copies_placed_in_time_are_counted_as_at_least_so_many():
    cluster = Cluster.load([node("n1", "8"), node("n2", "8")])
    incoming = web(labels={"app": "a"}, topologySpreadConstraints=[spread()])
    limit = after_looks(5)
    answer = cluster.capacity(incoming, limit=limit)
    assert (answer.fits, answer.is_at_least, answer.is_partial, limit.is_noticed) == (5, True, True, True)
    assert answer.as_dict(explain=False)["partial"] is True
    assert cluster.capacity(incoming).fits == 16
    assert not any(pod.node_name for pod in cluster.pods)


def spread():
    return {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }


def test_sizes_found_in_time_are_returned_as_partial():
    cluster = Cluster.load([node("n1", "8", memory="8Gi")])
    every = cluster.headroom(web(), 2)
    answer = cluster.headroom(web(), 2, after_looks(20))
    assert answer.is_partial
    assert answer.as_dict()["partial"] is True
    assert dict(answer.amounts).items() <= dict(every.amounts).items()
    assert cluster.headroom(web(), 2, UNLIMITED) == every


@pytest.mark.parametrize("looks", [0, 3, 6])
def test_steps_end_with_what_was_placed_in_time(looks):
    cluster = Cluster.load([node("n1", "1"), *(web(f"web-{number}") for number in range(9))])
    limit = after_looks(looks)
    trial = carry_out_steps(cluster, [AddNodes(9, "n1")], limit)
    answer = outcome_of(trial)
    assert (answer.is_partial, limit.is_noticed, answer.as_dict()["partial"]) == (True, True, True)
    assert len(answer.placed) <= looks
    assert len(answer.placed) + len(answer.still_pending) == 9
    complete = outcome_of(carry_out_steps(cluster, [AddNodes(9, "n1")]))
    assert "partial" not in complete.as_dict()
    assert len(complete.placed) == 9


def test_why_says_the_first_blocker_of_each_node_if_there_is_no_time_for_all():
    cluster = Cluster.load([node(f"n{number}", "2", taints=TAINTS) for number in range(3)])
    incoming_pod = web(cpu="4")
    every = cluster.why(incoming_pod)
    assert {group.plugin for group in every.groups} == {"NodeResourcesFit", "TaintToleration"}
    limit = after_looks(1)
    answer = cluster.why(incoming_pod, limit=limit)
    assert (answer.is_partial, limit.is_noticed, answer.as_dict()["partial"]) == (True, True, True)
    assert (answer.message, answer.node) == (every.message, None)
    assert [(group.plugin, group.count) for group in answer.groups] == [("TaintToleration", 3)]
    assert answer.one_edit_away is None
    assert not cluster.why(incoming_pod, limit=after_looks(500)).is_partial


def test_why_says_which_nodes_fit_if_there_is_no_time_for_the_others():
    cluster = Cluster.load([node("n1"), node("n2", taints=TAINTS)])
    answer = cluster.why(web(), limit=after_looks(0))
    assert (answer.is_partial, answer.node, [score.node for score in answer.scores]) == (True, "n1", ["n1"])


def test_what_was_found_is_remembered_for_the_case_that_there_is_no_answer():
    limit = after_looks(500)
    Cluster.load([node("n1")]).why(web(), limit=limit)
    assert limit.facts == ["default/web fits on 1 of 1 nodes and would go to n1"]
    Cluster.load([node("n1")]).why(web(), limit=UNLIMITED)
    assert UNLIMITED.facts == []
