"""What makes a whole gang fit."""

from __future__ import annotations

import pytest

from podium.insight import Cluster, EditKind, Fixes, GangFix
from tests.gang_manifests import COSCHEDULING, UPSTREAM, group, member, members
from tests.manifests import ZONE, Json, node, pod
from tests.unit.insight.test_gangs import load


def fixes(cluster: Cluster, name: str = "train-0") -> Fixes:
    (asked,) = (pod for pod in cluster.pods if pod.metadata.name == name)
    return cluster.fixes(asked)


def kinds(found: Fixes) -> list[list[EditKind]]:
    return [[part.edit.kind for part in fix.edits] for fix in found.fixes if isinstance(fix, GangFix)]


def apply_fix(cluster: Cluster, fix: GangFix) -> Cluster:
    """The cluster after the edits, patch by patch."""
    world = cluster.fork()
    for part in fix.edits:
        edit = part.edit
        if edit.manifest is not None:
            world.add(edit.manifest)
        elif edit.kind is EditKind.EVICT:
            world.remove("Pod", edit.name, edit.namespace)
        elif part.members:
            for key in part.members:
                world.patch("Pod", key.partition("/")[2], edit.patch)
        else:
            world.patch("Node", edit.name, edit.patch)
    return world


def assert_all_hold(cluster: Cluster, found: Fixes) -> None:
    assert found.fixes
    for fix in found.fixes:
        assert isinstance(fix, GangFix)
        world = apply_fix(cluster, fix)
        placed = world.place([pod for pod in world.pods if not pod.node_name])
        assert [move.message for move in placed] == [""] * len(placed), [part.text for part in fix.edits]


@pytest.mark.parametrize("kind", [COSCHEDULING, UPSTREAM])
def test_the_request_is_lowered_on_every_member_as_little_as_the_gang_needs(kind: str) -> None:
    cluster = load(node("n1", "4"), node("n2", "4"), group(kind, 3), *members(kind, 3))
    found = fixes(cluster, "train-2")
    assert found.text == "The whole gang default/train fits after one edit"
    assert [part.text for part in found.fixes[0].edits] == ["lower the request for cpu from 3 to 2, on each of 3 pods"]
    assert kinds(found) == [[EditKind.LOWER_REQUEST], [EditKind.ADD_NODE]]
    assert_all_hold(cluster, found)
    first = found.as_dict(explain=True)["fixes"][0]
    assert first["edits"][0]["members"] == ["default/train-0", "default/train-1", "default/train-2"]
    assert (first["minimum"], len(first["nodes"])) == (True, 3)


def test_a_large_gang_needs_smaller_pods_than_one_member_would() -> None:
    cluster = load(node("n1", "4"), node("n2", "4"), group(COSCHEDULING, 10), *members(COSCHEDULING, 10))
    found = fixes(cluster)
    texts = [part.text for fix in found.fixes for part in fix.edits]
    assert "lower the request for cpu from 3 to 800m, on each of 10 pods" in texts
    assert_all_hold(cluster, found)


def test_so_many_nodes_are_added_as_the_gang_needs() -> None:
    cluster = load(node("n1", "4"), group(COSCHEDULING, 4), *members(COSCHEDULING, 4))
    found = fixes(cluster)
    assert [EditKind.ADD_NODE] * 3 in kinds(found) or kinds(found)[0] == [EditKind.LOWER_REQUEST]
    assert_all_hold(cluster, found)


def test_all_members_give_up_what_keeps_them_off() -> None:
    ssd = {"nodeSelector": {"disk": "ssd"}}
    cluster = load(node("n1"), node("n2"), group(COSCHEDULING, 3), *members(COSCHEDULING, 3, **ssd))
    found = fixes(cluster)
    assert [EditKind.DROP_NODE_SELECTOR] in kinds(found)
    assert [EditKind.LABEL_NODE] in kinds(found)
    assert_all_hold(cluster, found)


def test_different_members_may_need_different_edits() -> None:
    taint = {"key": "team", "value": "a", "effect": "NoSchedule"}
    leader = member(COSCHEDULING, "train-0", cpu="1", nodeSelector={"role": "leader"})
    others = [member(COSCHEDULING, f"train-{index}") for index in (1, 2)]
    nodes = [node("n1", "4", taints=[taint]), node("n2", "4", unschedulable=True)]
    cluster = load(*nodes, group(COSCHEDULING, 3), leader, *others)
    found = fixes(cluster)
    assert all(len(fix.edits) > 1 for fix in found.fixes)
    assert not any(fix.is_minimum for fix in found.fixes)
    assert_all_hold(cluster, found)


def test_no_member_is_evicted_for_another() -> None:
    running = member(COSCHEDULING, "train-0", node="n1")
    other = pod("other", "3", node="n2")
    nodes = [node("n1", "4"), node("n2", "4")]
    cluster = load(*nodes, group(COSCHEDULING, 2), running, other, member(COSCHEDULING, "train-1"))
    found = fixes(cluster, "train-1")
    evicted = {part.edit.name for fix in found.fixes for part in fix.edits if part.edit.kind is EditKind.EVICT}
    assert evicted == {"other"}
    assert_all_hold(cluster, found)


def test_a_gang_that_fits_needs_nothing() -> None:
    found = fixes(load(node("n1"), group(COSCHEDULING, 3), *members(COSCHEDULING, 3)))
    assert (found.fits, found.text) == (True, "The whole gang default/train fits as it is")


def test_a_gang_that_lacks_pods_needs_pods() -> None:
    found = fixes(load(node("n1"), group(COSCHEDULING, 5), *members(COSCHEDULING, 3)))
    assert found.text == "No edit is looked for: only 3 of the 5 pods that it needs exist"


def test_members_that_are_not_needed_need_not_fit() -> None:
    assert fixes(load(node("n1", "4"), group(COSCHEDULING, 1), *members(COSCHEDULING, 3))).fits


def test_a_complete_gangs_member_is_fixed_by_itself() -> None:
    running: list[Json] = [member(COSCHEDULING, "train-0", node="n1")]
    cluster = load(node("n1", "4"), group(COSCHEDULING, 1), *running, member(COSCHEDULING, "train-1"))
    found = fixes(cluster, "train-1")
    assert not found.gang
    assert not any(isinstance(fix, GangFix) for fix in found.fixes)


def test_a_gang_stays_in_its_domain() -> None:
    nodes = [node(f"n{index}", "4", labels={ZONE: f"z{index}"}) for index in range(2)]
    one = {"topology": [{"key": ZONE}]}
    cluster = load(*nodes, group(UPSTREAM, 2, schedulingConstraints=one), *members(UPSTREAM, 2))
    found = fixes(cluster)
    assert found.fixes
    for fix in found.fixes:
        assert isinstance(fix, GangFix)
        world = apply_fix(cluster, fix)
        zones = {world.manifest_of("Node", name)["metadata"]["labels"][ZONE] for name in fix.nodes.values()}
        assert len(zones) == 1
