"""How many whole gangs fit."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gang_manifests import COSCHEDULING, UPSTREAM, group, member, with_coscheduling
from tests.manifests import ZONE, Json, node, pod
from tests.unit.insight.test_gangs import load


def gangs(*objects: Json, kind: str, config: Json | None = None, **fields: Any) -> tuple[int, int]:
    """Return how many pods fit, and how many gangs."""
    answer = load(*objects, config=config).capacity(member(kind, "train", **fields))
    assert answer.gang is not None
    return answer.fits, answer.gang.fits


@pytest.mark.parametrize("kind", [COSCHEDULING, UPSTREAM])
def test_pods_that_are_too_few_for_a_gang_do_not_count(kind: str) -> None:
    nodes = [node(f"n{index}", "4") for index in range(8)]
    assert gangs(*nodes, group(kind, 3), kind=kind) == (8, 2)
    assert gangs(*nodes, group(kind, 9), kind=kind) == (8, 0)


def test_the_plugin_does_not_wait_for_pods_that_the_question_is_about() -> None:
    nodes = [node(f"n{index}", "4") for index in range(4)]
    assert gangs(*nodes, group(COSCHEDULING, 2), kind=COSCHEDULING, config=with_coscheduling()) == (4, 2)


def test_a_gang_lies_in_one_domain() -> None:
    nodes = [node(f"n{index}", "4", labels={ZONE: f"z{index % 2}"}) for index in range(6)]
    one_domain = {"topology": [{"key": ZONE}]}
    assert gangs(*nodes, group(UPSTREAM, 2, schedulingConstraints=one_domain), kind=UPSTREAM) == (6, 2)
    answer = load(*nodes, group(UPSTREAM, 2, schedulingConstraints=one_domain)).capacity(member(UPSTREAM, "train"))
    assert answer.as_dict(explain=False)["gangs"] == {
        "gang": "default/train",
        "size": 2,
        "fits": 2,
        "domain_key": ZONE,
    }


def test_members_that_run_already_are_no_part_of_the_next_gang() -> None:
    running = member(COSCHEDULING, "train-0", node="n0")
    nodes = [node(f"n{index}", "4") for index in range(3)]
    assert gangs(*nodes, group(COSCHEDULING, 2), running, kind=COSCHEDULING) == (2, 1)


def test_capacity_of_a_gang_leaves_the_cluster_unchanged() -> None:
    cluster = load(node("n1", "4"), group(COSCHEDULING, 2), config=with_coscheduling())
    cluster.capacity(member(COSCHEDULING, "train"))
    assert cluster.pods == ()


def test_gangs_of_an_unknown_size_are_not_counted() -> None:
    for kind in (UPSTREAM, COSCHEDULING):
        answer = load(node("n1", "8")).capacity(member(kind, "train"))
        assert answer.fits == 2
        assert answer.gang is not None
        assert (answer.gang.fits, "PodGroup default/train" in answer.gang.problem) == (0, True)
        assert set(answer.gang.as_dict()) == {"gang", "problem"}


@pytest.mark.parametrize("config", [None, with_coscheduling()])
def test_whole_gangs_are_counted_beside_other_pods(config: Json | None) -> None:
    cluster = load(*(node(f"n{index}", "4") for index in range(8)), group(COSCHEDULING, 3), config=config)
    web_pod = pod("web", "4", scheduler=member(COSCHEDULING, "train")["spec"].get("schedulerName"))
    of_gang, beside = cluster.capacity_together([member(COSCHEDULING, "train"), web_pod])
    assert of_gang.gang is not None
    assert (of_gang.fits, beside.fits, of_gang.gang.fits, of_gang.gang.size) == (4, 4, 1, 3)
    assert beside.gang is None
    assert cluster.pods == ()


def test_gangs_that_lie_in_one_domain_are_not_counted_beside_other_pods() -> None:
    nodes = [node(f"n{index}", "4", labels={ZONE: f"z{index % 2}"}) for index in range(6)]
    cluster = load(*nodes, group(UPSTREAM, 2, schedulingConstraints={"topology": [{"key": ZONE}]}))
    (count,) = cluster.capacity_together([member(UPSTREAM, "train")])
    assert count.gang is not None
    assert count.gang.problem == f"all its pods have to lie in one {ZONE}, which is counted only for a pod by itself"
