"""NodeIndex that a pod need not be tried on."""

from __future__ import annotations

import random

import numpy as np

from podium.objects.meta import LabelSelector
from podium.provisioner.provisioning.node_index import Limits, NodeIndex, OrderedNodeIndex
from podium.provisioner.provisioning.topology_groups import Rule, TopologyGroup, TopologyKind
from podium.provisioner.scheduling.requirements import Requirement, Requirements
from tests.unit.provisioner.clusters import HOSTNAME, ZONE

ANYWHERE = Requirements()


def group_of(*hostnames: str) -> TopologyGroup:
    web = LabelSelector(match_labels={"app": "web"})
    group = TopologyGroup(Rule(TopologyKind.ANTI_AFFINITY, HOSTNAME, frozenset({"default"}), web), [])
    group.record(hostnames)
    return group


def in_zones(*zones: str) -> Requirements:
    return Requirements([Requirement(ZONE, False, frozenset(zones))])


def open_places(places: NodeIndex, limits: Limits | None = None, **requests: int) -> list[int]:
    return np.flatnonzero(places.open_to(requests, limits or Limits())).tolist()


def test_places_without_room_are_ruled_out() -> None:
    places = NodeIndex()
    places.add("a", {"cpu": 2}, ANYWHERE)
    places.add("b", {"cpu": 4, "gpu": 1}, ANYWHERE)
    assert open_places(places, cpu=2) == [0, 1]
    assert open_places(places, cpu=3) == [1]
    assert open_places(places, gpu=1) == [1]
    assert open_places(places, gpu=0, unheard_of=0) == [0, 1]
    assert open_places(places, unheard_of=1) == []
    places.narrow(1, {"cpu": 1}, ANYWHERE)
    assert open_places(places, cpu=2) == [0]
    assert open_places(places, cpu=10**30) == []


def test_places_whose_host_has_too_many_pods_of_a_group_are_ruled_out() -> None:
    places, group = NodeIndex(), group_of("b")
    for name in "abc":
        places.add(name, {"cpu": 1}, ANYWHERE)
    limits = Limits(hosts=[(group, 0)])
    assert open_places(places, limits, cpu=1) == [0, 2]
    group.record(["c"])
    places.count_again(2, [group])
    assert open_places(places, limits, cpu=1) == [0]


def test_places_without_any_of_the_domains_are_ruled_out() -> None:
    places = NodeIndex()
    places.add("a", {}, in_zones("z1"))
    places.add("b", {}, in_zones("z1", "z2"))
    places.add("c", {}, ANYWHERE)
    assert open_places(places, Limits(domains=[(ZONE, ["z2"])])) == [1, 2]
    assert open_places(places, Limits(domains=[(ZONE, [])])) == []
    places.narrow(2, {}, in_zones("z3"))
    assert open_places(places, Limits(domains=[(ZONE, ["z2", "z4"])])) == [1]
    assert open_places(places, Limits(domains=[(ZONE, ["z3"])])) == [2]


def test_a_label_with_very_many_values_rules_out_no_place() -> None:
    places = NodeIndex()
    places.add("a", {}, in_zones("z1"))
    zones = [f"z{index}" for index in range(2, 99)]
    assert open_places(places, Limits(domains=[(ZONE, zones)])) == [0]
    places.add("b", {}, ANYWHERE)
    assert open_places(places, Limits(domains=[(ZONE, ["z2"])])) == [0, 1]


def test_places_are_in_the_order_of_a_stable_sort_before_each_pod() -> None:
    chooser = random.Random(1)
    places, sorted_places = OrderedNodeIndex(), []
    counts: dict[int, int] = {}
    for _ in range(400):
        sorted_places.sort(key=lambda index: counts[index])
        all_places = np.ones(len(places), dtype=np.bool_)
        assert list(places.in_order(all_places)) == sorted_places
        if not counts or chooser.random() < 0.3:
            index = len(counts)
            places.add(f"host-{index}", {"cpu": 1}, ANYWHERE)
            sorted_places.append(index)
            counts[index] = 1
        else:
            index = chooser.choice(sorted_places)
            counts[index] += 1
            places.move(index, counts[index])
    assert len(places) == len(counts) > 64


def test_only_chosen_places_are_given_in_order() -> None:
    places = OrderedNodeIndex()
    for index in range(9):
        places.add(str(index), {}, ANYWHERE)
    mask = np.array([index % 2 == 0 for index in range(9)])
    assert list(places.in_order(mask)) == [0, 2, 4, 6, 8]
    places.move(2, 2)
    assert list(places.in_order(mask)) == [0, 4, 6, 8, 2]
