"""What makes a whole gang fit."""

from __future__ import annotations

import pytest

from podium.insight import Cluster, EditKind, Fixes, GangFix
from tests.gang_manifests import COSCHEDULING, UPSTREAM, group, member, members
from tests.gangs.fixes import apply_fix, check_fixes
from tests.manifests import HOSTNAME, ZONE, Json, node, pod
from tests.unit.insight.test_gangs import load
from tests.workload_manifests import workload

IN_GROUP = {"schedulingGroup": {"podGroupName": "train"}}


def fixes(cluster: Cluster, name: str = "train-0") -> Fixes:
    (target,) = (pod for pod in cluster.pods if pod.metadata.name == name)
    return cluster.fixes(target)


def kinds(fixes: Fixes) -> list[list[EditKind]]:
    return [[part.edit.kind for part in fix.edits] for fix in fixes.fixes if isinstance(fix, GangFix)]


def assert_all_hold(cluster: Cluster, fixes: Fixes) -> None:
    assert fixes.fixes
    for fix in fixes.fixes:
        assert isinstance(fix, GangFix)
        world = apply_fix(cluster, fix)
        moves = world.place([pod for pod in world.pods if not pod.node_name])
        assert [move.message for move in moves] == [""] * len(moves), [part.text for part in fix.edits]


@pytest.mark.parametrize("kind", [COSCHEDULING, UPSTREAM])
def test_the_request_is_lowered_on_every_member_as_little_as_the_gang_needs(kind: str) -> None:
    cluster = load(node("n1", "4"), node("n2", "4"), group(kind, 3), *members(kind, 3))
    answer = fixes(cluster, "train-2")
    assert answer.text == "The whole gang default/train fits after one edit"
    assert [part.text for part in answer.fixes[0].edits] == ["lower the request for cpu from 3 to 2, on each of 3 pods"]
    assert kinds(answer) == [[EditKind.LOWER_REQUEST], [EditKind.ADD_NODE]]
    assert_all_hold(cluster, answer)
    first = answer.as_dict(explain=True)["fixes"][0]
    assert first["edits"][0]["members"] == ["default/train-0", "default/train-1", "default/train-2"]
    assert (first["minimum"], len(first["nodes"])) == (True, 3)


def test_a_large_gang_needs_smaller_pods_than_one_member_would() -> None:
    cluster = load(node("n1", "4"), node("n2", "4"), group(COSCHEDULING, 10), *members(COSCHEDULING, 10))
    answer = fixes(cluster)
    texts = [part.text for fix in answer.fixes for part in fix.edits]
    assert "lower the request for cpu from 3 to 800m, on each of 10 pods" in texts
    assert_all_hold(cluster, answer)


def test_so_many_nodes_are_added_as_the_gang_needs() -> None:
    cluster = load(node("n1", "4"), group(COSCHEDULING, 4), *members(COSCHEDULING, 4))
    answer = fixes(cluster)
    assert [EditKind.ADD_NODE] * 3 in kinds(answer) or kinds(answer)[0] == [EditKind.LOWER_REQUEST]
    assert_all_hold(cluster, answer)


def test_all_members_give_up_what_keeps_them_off() -> None:
    ssd = {"nodeSelector": {"disk": "ssd"}}
    cluster = load(node("n1"), node("n2"), group(COSCHEDULING, 3), *members(COSCHEDULING, 3, **ssd))
    answer = fixes(cluster)
    assert [EditKind.DROP_NODE_SELECTOR] in kinds(answer)
    assert [EditKind.LABEL_NODE] in kinds(answer)
    assert_all_hold(cluster, answer)


@pytest.mark.long
def test_different_members_may_need_different_edits() -> None:
    taint = {"key": "team", "value": "a", "effect": "NoSchedule"}
    leader = member(COSCHEDULING, "train-0", cpu="1", nodeSelector={"role": "leader"})
    nodes = [node("n1", "4", taints=[taint]), node("n2", "3", unschedulable=True)]
    cluster = load(*nodes, group(COSCHEDULING, 2), leader, member(COSCHEDULING, "train-1"))
    answer = fixes(cluster)
    assert all(len(fix.edits) > 1 for fix in answer.fixes)
    assert all(fix.is_minimum for fix in answer.fixes)
    assert_all_hold(cluster, answer)


def test_a_max_skew_is_raised_once_and_as_far_as_the_gang_needs() -> None:
    rule: Json = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    rule |= {"labelSelector": {"matchLabels": {"app": "train"}}}
    nodes = [node("n0", "16", labels={ZONE: "z0"}), node("n1", "1", labels={ZONE: "z1"})]
    spread = {"topologySpreadConstraints": [rule]}
    gang = [pod(f"train-{index}", "3", labels={"app": "train"}, **IN_GROUP, **spread) for index in range(4)]
    cluster = load(*nodes, group(UPSTREAM, 4), *gang)
    answer = fixes(cluster)
    assert [part.text for part in answer.fixes[0].edits] == [
        "raise maxSkew from 1 to 4 over " + ZONE + ", on each of 4 pods"
    ]
    assert_all_hold(cluster, answer)


def test_a_member_that_has_a_node_may_have_to_ask_for_less() -> None:
    pinned = {"nodeSelector": {HOSTNAME: "n1"}}
    leader = member(UPSTREAM, "train-0", cpu="4", **pinned)
    followers = [member(UPSTREAM, f"train-{index}", cpu="1", **pinned) for index in (1, 2)]
    answer = fixes(load(node("n1", "4"), group(UPSTREAM, 3), leader, *followers))
    assert "lower the request for cpu from 4 to 2" in [part.text for fix in answer.fixes for part in fix.edits]
    assert all(fix.is_minimum for fix in answer.fixes if len(fix.edits) == 1)


def test_pods_of_a_daemon_set_count_once_on_each_node_that_is_added() -> None:
    daemon_set = workload("DaemonSet", "agent", 0)
    daemon_set["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    pinned = {"nodeSelector": {"pool": "gpu"}}
    full = [node("n1", "4", labels={"pool": "gpu"}), pod("other", "4", node="n1")]
    answer = fixes(load(*full, daemon_set, group(UPSTREAM, 4), *members(UPSTREAM, 4, **pinned)))
    counts = [len(names) for names in kinds(answer) if set(names) == {EditKind.ADD_NODE}]
    assert counts == [4]


@pytest.mark.parametrize("seed", [8])
def test_no_smaller_set_of_edits_is_enough(seed: int) -> None:
    assert not check_fixes(seed)


def test_no_member_is_evicted_for_another() -> None:
    running = member(COSCHEDULING, "train-0", node="n1")
    neighbour = pod("other", "3", node="n2")
    nodes = [node("n1", "4"), node("n2", "4")]
    cluster = load(*nodes, group(COSCHEDULING, 2), running, neighbour, member(COSCHEDULING, "train-1"))
    answer = fixes(cluster, "train-1")
    victims = {part.edit.name for fix in answer.fixes for part in fix.edits if part.edit.kind is EditKind.EVICT}
    assert victims == {"other"}
    assert_all_hold(cluster, answer)


def test_a_gang_that_fits_needs_nothing() -> None:
    answer = fixes(load(node("n1"), group(COSCHEDULING, 3), *members(COSCHEDULING, 3)))
    assert (answer.fits, answer.text) == (True, "The whole gang default/train fits as it is")


def test_a_gang_that_lacks_pods_needs_pods() -> None:
    answer = fixes(load(node("n1"), group(COSCHEDULING, 5), *members(COSCHEDULING, 3)))
    assert answer.text == "No edit is looked for: only 3 of the 5 pods that it needs exist"


def test_members_that_are_not_needed_need_not_fit() -> None:
    assert fixes(load(node("n1", "4"), group(COSCHEDULING, 1), *members(COSCHEDULING, 3))).fits


def test_a_complete_gangs_member_is_fixed_by_itself() -> None:
    running: list[Json] = [member(COSCHEDULING, "train-0", node="n1")]
    cluster = load(node("n1", "4"), group(COSCHEDULING, 1), *running, member(COSCHEDULING, "train-1"))
    answer = fixes(cluster, "train-1")
    assert not answer.gang
    assert not any(isinstance(fix, GangFix) for fix in answer.fixes)


def test_a_gang_stays_in_its_domain() -> None:
    nodes = [node(f"n{index}", "4", labels={ZONE: f"z{index}"}) for index in range(2)]
    one_domain = {"topology": [{"key": ZONE}]}
    cluster = load(*nodes, group(UPSTREAM, 2, schedulingConstraints=one_domain), *members(UPSTREAM, 2))
    answer = fixes(cluster)
    assert answer.fixes
    for fix in answer.fixes:
        assert isinstance(fix, GangFix)
        world = apply_fix(cluster, fix)
        zones = {world.manifest_of("Node", name)["metadata"]["labels"][ZONE] for name in fix.nodes.values()}
        assert len(zones) == 1
