"""TopologyLevels: groups within one rack, or one block, and whole racks kept free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

import podium
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.plugin import Scope
from podium.framework.contract.status import PluginError, unresolvable
from podium.framework.profile.plugin_args import typed_args
from podium.objects.core import Node, Pod
from podium.objects.coscheduling import GROUP_LABEL, MIN_MEMBER, CoschedulingPodGroup
from podium.plugins.contrib.topology_levels.plugin import TopologyLevels
from podium.testing import RecordingHandle, check_contract
from tests.builders import node, pod, snapshot_of

RACK, BLOCK = "example.com/rack", "example.com/block"
ARGS = {"levels": [RACK, BLOCK]}
REQUIRED = {**ARGS, "requiredLevel": RACK}


def place(name: str, rack: str | None = None, block: str | None = None, cpu: str = "4") -> Node:
    labels = {key: value for key, value in ((RACK, rack), (BLOCK, block)) if value is not None}
    return node(name, cpu=cpu, labels=labels)


def member(name: str, on: str = "", cpu: str = "2", size: int = 0, of: str = "train") -> Pod:
    annotations = {MIN_MEMBER: str(size)} if size else {}
    return pod(name, node=on, cpu=cpu, labels={GROUP_LABEL: of}, metadata={"annotations": annotations})


class Attempt:
    """One attempt at a pod, in a cluster of these objects."""

    def __init__(self, *items: Any, incoming: Pod, args: Any = None) -> None:
        self.pod = incoming
        placed = [item for item in items if isinstance(item, Node) or (isinstance(item, Pod) and item.node_name)]
        self.snapshot = snapshot_of(*placed)
        self.plugin = TopologyLevels(
            typed_args(TopologyLevels, args or ARGS), RecordingHandle(self.snapshot, [*items, incoming])
        )
        self.state = CycleState()
        _, self.status = self.plugin.pre_filter(self.state, incoming, self.snapshot)

    def scores(self) -> dict[str, int]:
        """Normalised, by node; empty if the plugin skips."""
        rows = self.snapshot.order
        if self.plugin.pre_score(self.state, self.pod, self.snapshot, rows) is not None:
            return {}
        raw = self.plugin.score_rows(self.state, self.pod, self.snapshot, rows)
        one_by_one = [self.plugin.score(self.state, self.pod, self.snapshot.node(row)) for row in rows.tolist()]
        assert raw.tolist() == one_by_one
        final = self.plugin.normalize_scores(self.state, self.pod, raw)
        return {self.snapshot.name(row): int(score) for row, score in zip(rows.tolist(), final, strict=True)}

    def best(self) -> set[str]:
        scores = self.scores()
        return {name for name, score in scores.items() if score == max(scores.values())}

    def rejected(self) -> dict[str, str]:
        rows = self.snapshot.order
        verdicts = self.plugin.filter_rows(self.state, self.pod, self.snapshot, rows)
        by_table = {}
        for row, verdict in zip(rows.tolist(), [0] * len(rows) if verdicts is None else verdicts, strict=True):
            if verdict:
                status = self.plugin.explain(self.state, self.pod, int(verdict))
                assert status == unresolvable(status.message)
                by_table[self.snapshot.name(row)] = status.message
        one_by_one = {
            self.snapshot.name(row): status.message
            for row in rows.tolist()
            if (status := self.plugin.filter(self.state, self.pod, self.snapshot.node(row))) is not None
        }
        assert one_by_one == by_table
        return by_table


def racks(sizes: Mapping[str, int], block: str = "x", cpu: str = "4") -> list[Node]:
    """Nodes of 4 cpus, so many in each rack."""
    return [place(f"{rack}-{index}", rack, block, cpu) for rack, count in sizes.items() for index in range(count)]


@pytest.mark.parametrize("args", [ARGS, REQUIRED, {**ARGS, "singlePods": "pack"}])
def test_it_keeps_the_contract(args: Any) -> None:
    check_contract(TopologyLevels, args)


# ---------------------------------------------------------------- the order of nodes


def test_the_first_pod_goes_into_the_smallest_rack_with_room_for_all() -> None:
    attempt = Attempt(*racks({"small": 1, "fits": 2, "large": 3}), incoming=member("a", size=4))
    scores = attempt.scores()
    assert attempt.best() == {"fits-0", "fits-1"}
    assert scores["large-0"] > scores["small-0"]


def test_a_rack_that_is_in_use_is_filled_before_an_empty_one_is_begun() -> None:
    busy = [pod("other", node="b-0", cpu="4")]
    assert Attempt(*racks({"a": 2, "b": 2}), *busy, incoming=member("a", size=2)).best() == {"b-0", "b-1"}


def test_the_others_follow_the_first_pod_even_into_a_larger_rack() -> None:
    placed = member("a", "large-0", size=4)
    attempt = Attempt(*racks({"fits": 2, "large": 3}), placed, incoming=member("b", size=4))
    assert attempt.best() == {"large-0", "large-1", "large-2"}


def test_a_group_too_large_for_a_rack_goes_into_one_block_and_fills_the_largest_rack_first() -> None:
    nodes = racks({"x1": 1, "x2": 2}, "x") + racks({"y1": 1, "y2": 1}, "y")
    assert Attempt(*nodes, incoming=member("a", size=6)).best() == {"x2-0", "x2-1"}
    placed = member("a", "x2-0", size=6)
    attempt = Attempt(*nodes, placed, incoming=member("b", size=6))
    scores = attempt.scores()
    assert attempt.best() == {"x2-0", "x2-1"}
    assert scores["x1-0"] > scores["y1-0"]


def test_the_rest_of_a_group_goes_into_the_rack_with_least_room_to_spare() -> None:
    nodes = racks({"full": 1, "one": 1, "two": 2})
    placed = [member(f"m{index}", "full-0") for index in range(2)]
    scores = Attempt(*nodes, *placed, incoming=member("c", size=4)).scores()
    assert scores["full-0"] > scores["one-0"] > scores["two-0"]


def test_the_rest_of_a_group_goes_where_all_of_it_fits_rather_than_where_a_part_does() -> None:
    nodes = racks({"full": 1, "part": 1, "two": 2})
    placed = [member(f"m{index}", "full-0") for index in range(2)]
    busy = pod("other", node="part-0", cpu="2")
    scores = Attempt(*nodes, *placed, busy, incoming=member("c", size=4)).scores()
    assert scores["two-0"] > scores["part-0"]


def test_the_pods_of_a_group_that_request_more_need_room_too() -> None:
    nodes = [*racks({"small": 2}), *racks({"large": 4}, cpu="5")]
    workers = [member(f"worker-{index}", cpu="4") for index in range(3)]
    head = member("head", cpu="1")
    assert Attempt(*nodes, *workers, incoming=head).best() == {f"large-{index}" for index in range(4)}
    exact = [*racks({"small": 2}), *racks({"exact": 3}, cpu="5")]
    more_heads = [member(f"head-{index}", cpu="1") for index in range(2)]
    assert Attempt(*exact, *workers, *more_heads, incoming=head).best() == {f"exact-{index}" for index in range(3)}
    required = Attempt(*nodes, *workers, incoming=head, args=REQUIRED)
    assert set(required.rejected()) == {"small-0", "small-1"}


def test_a_pod_of_the_group_that_cannot_be_read_needs_no_room() -> None:
    broken = member("broken", cpu="much")
    assert Attempt(*racks({"one": 1, "two": 2}), broken, member("b"), incoming=member("a")).best() == {"one-0"}


def test_a_cluster_without_nodes_has_no_order() -> None:
    assert Attempt(incoming=member("a"), args=REQUIRED).rejected() == {}
    attempt = Attempt(incoming=member("a"))
    assert attempt.plugin.pre_score(attempt.state, attempt.pod, attempt.snapshot, attempt.snapshot.order) is None


def test_of_two_equal_racks_the_one_in_the_fuller_block_wins() -> None:
    nodes = racks({"a1": 1, "a2": 1}, "a") + racks({"b1": 1, "b2": 1}, "b")
    busy = [pod("other", node="b2-0", cpu="4")]
    assert Attempt(*nodes, *busy, incoming=member("a", size=2)).best() == {"b1-0"}


def test_racks_of_one_name_in_two_blocks_are_two_racks() -> None:
    nodes = [place("p", "r1", "x"), place("q", "r1", "y"), place("r", "r2", "y", cpu="8")]
    attempt = Attempt(*nodes, member("a", "q", size=4), incoming=member("b", size=4))
    scores = attempt.scores()
    assert scores["q"] > scores["r"] > scores["p"]


def test_nodes_without_a_label_belong_to_the_wider_level_only() -> None:
    nodes = [place("bare"), place("block-only", None, "x"), *racks({"a": 1}, "x")]
    scores = Attempt(*nodes, incoming=member("a", size=2)).scores()
    assert scores["a-0"] > scores["block-only"] > scores["bare"]


def test_nodes_that_take_no_such_pod_are_no_room() -> None:
    tainted = [node(f"t-{index}", labels={RACK: "t", BLOCK: "x"}, taints=["gpu:NoSchedule"]) for index in range(2)]
    cordoned = [node(f"c-{index}", labels={RACK: "c", BLOCK: "x"}, unschedulable=True) for index in range(2)]
    attempt = Attempt(*tainted, *cordoned, *racks({"large": 3}), incoming=member("a", size=4))
    assert attempt.best() == {"large-0", "large-1", "large-2"}
    disk = pod("a", cpu="2", labels={GROUP_LABEL: "train"}, spec={"nodeSelector": {RACK: "large"}})
    assert Attempt(*racks({"fits": 1, "large": 3}), incoming=disk).best() == {"large-0", "large-1", "large-2"}


def test_the_known_pods_of_a_group_count_if_nothing_says_how_many_it_needs() -> None:
    nodes = racks({"one": 1, "two": 2})
    assert Attempt(*nodes, incoming=member("a")).best() == {"one-0"}
    others = [member(name) for name in "bc"]
    assert Attempt(*nodes, *others, incoming=member("a")).best() == {"two-0", "two-1"}


def test_a_pod_group_says_how_many_pods_it_needs() -> None:
    metadata = {"name": "train", "namespace": "default"}
    group = msgspec.convert({"metadata": metadata, "spec": {"minMember": 4}}, CoschedulingPodGroup)
    assert Attempt(*racks({"one": 1, "two": 2}), group, incoming=member("a")).best() == {"two-0", "two-1"}


def test_pods_of_a_scheduling_group_are_a_group_too() -> None:
    pods = [pod(name, cpu="2", group="train") for name in "abc"]
    assert Attempt(*racks({"one": 1, "two": 2}), *pods[1:], incoming=pods[0]).best() == {"two-0", "two-1"}
    placed = pod("a", cpu="2", group="train", node="two-0")
    assert Attempt(*racks({"one": 1, "two": 2}), placed, incoming=pods[1]).best() == {"two-0", "two-1"}


def test_pods_without_a_group_are_packed_only_if_the_args_say_so() -> None:
    nodes = racks({"a": 2, "b": 2})
    busy = pod("other", node="b-0", cpu="2")
    assert Attempt(*nodes, busy, incoming=pod("web", cpu="2")).scores() == {}
    packing = {**ARGS, "singlePods": "pack"}
    assert Attempt(*nodes, busy, incoming=pod("web", cpu="2"), args=packing).best() == {"b-0", "b-1"}


# ---------------------------------------------------------------- a required level


def test_without_a_required_level_no_node_is_rejected() -> None:
    attempt = Attempt(*racks({"a": 1}), member("a", "a-0"), incoming=member("b"))
    assert attempt.rejected() == {}
    assert attempt.plugin.events_to_register() == ()
    assert attempt.plugin.score_scope(attempt.pod.spec) is Scope.CLUSTER


def test_racks_without_room_for_the_whole_group_are_rejected_for_its_first_pod() -> None:
    attempt = Attempt(place("bare"), *racks({"one": 1, "two": 2}), incoming=member("a", size=4), args=REQUIRED)
    assert attempt.rejected() == {
        "bare": f"node(s) had no label {RACK}",
        "one-0": f"node(s) were in a {RACK} without room for the 4 pods of the group",
    }
    assert attempt.plugin.events_to_register() != ()


def test_people_are_told_how_much_room_a_domain_has() -> None:
    attempt = Attempt(place("bare"), *racks({"one": 1, "two": 2}), incoming=member("a", size=5), args=REQUIRED)
    details = attempt.plugin.rejection_details(attempt.pod, attempt.snapshot, attempt.snapshot.order)
    assert details == {
        f"{RACK} one has room for 2 of 5 pods of the group": 1,
        f"{RACK} two has room for 4 of 5 pods of the group": 2,
    }
    broken = Attempt(place("bare"), incoming=member("a", cpu="much"), args=REQUIRED)
    assert broken.plugin.rejection_details(broken.pod, broken.snapshot, broken.snapshot.order) == {}


def test_the_others_must_follow_the_first_pod() -> None:
    placed = member("a", "one-0", size=4)
    attempt = Attempt(*racks({"one": 1, "two": 2}), placed, incoming=member("b", size=4), args=REQUIRED)
    text = f"node(s) were not in the {RACK} where the pod's group is"
    assert attempt.rejected() == {"two-0": text, "two-1": text}


def test_a_group_that_is_apart_already_goes_on_where_most_of_it_is() -> None:
    placed = [member("a", "one-0"), member("b", "two-0"), member("c", "two-1")]
    attempt = Attempt(*racks({"one": 2, "two": 3}), *placed, incoming=member("d"), args=REQUIRED)
    assert set(attempt.rejected()) == {"one-0", "one-1"}


def test_pods_without_a_group_may_go_anywhere() -> None:
    attempt = Attempt(place("bare"), *racks({"one": 1}), incoming=pod("web"), args=REQUIRED)
    assert attempt.rejected() == {}


def test_requests_that_cannot_be_parsed_are_named() -> None:
    broken = member("a", cpu="much")
    attempt = Attempt(*racks({"one": 1}), incoming=broken, args=REQUIRED)
    assert attempt.status is not None
    assert "spec.containers[0].resources.requests[cpu]" in attempt.status.message
    status = attempt.plugin.pre_score(attempt.state, broken, attempt.snapshot, attempt.snapshot.order)
    assert status is not None
    assert "spec.containers[0].resources.requests[cpu]" in status.message


# ---------------------------------------------------------------- whole groups


def configuration(**args: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"multiPoint": {"enabled": [{"name": "TopologyLevels", "weight": 10}]}},
                "pluginConfig": [{"name": "TopologyLevels", "args": {**ARGS, **args}}],
            }
        ],
    }


def manifest(name: str, of: str, cpu: str) -> dict[str, Any]:
    container = {"name": "app", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": {GROUP_LABEL: of}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def placed_racks(groups: Mapping[str, int], **args: Any) -> dict[str, Counter[str]]:
    """The racks of each group's pods: two blocks of four racks of four nodes, which hold two pods each."""
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"{block}{rack}{number}", "labels": {RACK: f"{block}{rack}", BLOCK: block}},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
        }
        for block in "xy"
        for rack in range(4)
        for number in range(4)
    ]
    pods = [manifest(f"{of}-{index:02}", of, "2") for of, count in groups.items() for index in range(count)]
    cluster = podium.Cluster.load([*nodes, *pods], configuration(**args))
    found: dict[str, Counter[str]] = {of: Counter() for of in groups}
    for of in groups:
        for placement in cluster.place_all([item for item in cluster.pods if item.metadata.labels[GROUP_LABEL] == of]):
            found[of][(placement.node or "nowhere")[:2]] += 1
    return found


def test_groups_are_placed_whole_in_few_racks() -> None:
    found = placed_racks({"a": 8, "b": 3, "c": 5, "d": 12, "e": 20})
    assert [len(found[of]) for of in "abcde"] == [1, 1, 1, 2, 3]
    assert found["b"].keys() == found["c"].keys()
    assert {rack[0] for rack in found["e"]} in ({"x"}, {"y"})


def test_a_group_without_room_in_one_rack_is_not_begun_if_the_rack_is_required() -> None:
    found = placed_racks({"a": 8, "b": 9}, requiredLevel=RACK)
    assert (len(found["a"]), found["b"]) == (1, Counter(no=9))


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({}, "levels: Required value: name the node labels of the levels, the narrowest first"),
        ({"levels": ["a b"]}, 'levels[0]: Invalid value: "a b": not a label key'),
        ({"levels": [RACK, RACK]}, f'levels[1]: Duplicate value: "{RACK}"'),
        (
            {"levels": [RACK], "requiredLevel": BLOCK},
            f'requiredLevel: Invalid value: "{BLOCK}": must be one of the levels',
        ),
        ({"levels": [RACK], "singlePods": "spread"}, "args.singlePods: "),
    ],
)
def test_args_that_make_no_sense_are_refused(args: Any, error: str) -> None:
    with pytest.raises(PluginError) as raised:
        typed_args(TopologyLevels, args)
    assert error in str(raised.value)
