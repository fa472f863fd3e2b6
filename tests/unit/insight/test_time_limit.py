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
