"""Gangs that a plan by Karpenter's rules buys nodes for in vain."""

import pytest

from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.reports.plan import PlanReport
from podium.provisioner.state.settings import Settings
from tests.gang_manifests import COSCHEDULING, LABEL, UPSTREAM, group
from tests.unit.provisioner.clusters import NOW, ZONE, catalogue, instance_type, node_pool, pod, read_with_groups

TYPES = (instance_type("c-4", 4, "8Gi"),)


def _members(kind: str, count: int):
    if kind == COSCHEDULING:
        return [pod(f"train-{index}", cpu="3", labels={LABEL: "train"}) for index in range(count)]
    return [pod(f"train-{index}", cpu="3", schedulingGroup={"podGroupName": "train"}) for index in range(count)]


def _report(*objects, groups=()) -> PlanReport:
    basis = PlanBasis(read_with_groups([*objects, *groups]), catalogue(*TYPES), Settings())
    return PlanReport.by_karpenter(basis, NOW)


@pytest.mark.parametrize("kind", [UPSTREAM, COSCHEDULING])
def test_a_warning_names_the_gang_and_the_nodes_that_will_be_idle(kind: str):
    report = _report(*_members(kind, 4), node_pool(limits={"cpu": "8"}), groups=[group(kind, 4)])
    assert len(report.plan.nodes) == 2
    (warning,) = report.warnings
    assert warning == (
        f"the gang default/train ({kind}) does not start: it needs 4 of its pods to have a node, and 2 have one, so "
        "these new nodes will be idle: 2 c-4 of NodePool pool (--rules podium buys none for it)"
    )


def test_a_gang_that_starts_is_not_warned_about():
    assert _report(*_members(UPSTREAM, 2), node_pool(), groups=[group(UPSTREAM, 2)]).warnings == ()


def test_a_gang_without_a_group_is_warned_about():
    (warning,) = _report(*_members(UPSTREAM, 2), node_pool()).warnings
    assert "the PodGroup default/train does not exist" in warning


def test_nodes_that_other_pods_use_are_not_idle():
    small = [pod("train-0", cpu="1", schedulingGroup={"podGroupName": "train"}), pod("web", cpu="1")]
    (warning,) = _report(*small, node_pool(), groups=[group(UPSTREAM, 4)]).warnings
    assert "idle" not in warning


def test_a_group_that_cannot_be_read_is_as_if_it_were_not_there():
    broken_group = {**group(UPSTREAM, 2), "spec": {"schedulingPolicy": {"gang": {"minCount": "two"}}}}
    (warning,) = _report(*_members(UPSTREAM, 2), node_pool(), groups=[broken_group]).warnings
    assert "does not exist" in warning


def _in_one_zone(policy):
    spec = {"schedulingPolicy": policy, "schedulingConstraints": {"topology": [{"key": ZONE}]}}
    return {**group(UPSTREAM, 1), "spec": spec}


def _over_zones():
    """Members of which Karpenter places each in a zone of its own."""
    return [
        pod(f"train-{index}", schedulingGroup={"podGroupName": "train"}, nodeSelector={ZONE: f"zone-{index + 1}"})
        for index in range(2)
    ]


def test_a_gang_that_karpenter_spreads_over_zones_though_it_needs_one_does_not_start():
    (warning,) = _report(*_over_zones(), node_pool(), groups=[_in_one_zone({"gang": {"minCount": 2}})]).warnings
    assert f"it needs 2 of its pods to have nodes with one value of {ZONE}, and 1 have such nodes" in warning
    assert "idle: 2 c-4 of NodePool pool" in warning


def test_a_group_of_the_basic_policy_that_karpenter_spreads_over_zones_is_warned_about():
    (warning,) = _report(*_over_zones(), node_pool(), groups=[_in_one_zone({"basic": {}})]).warnings
    assert "the group default/train (scheduling.k8s.io) does not start as a whole" in warning
    assert f"its pods must have nodes with one value of {ZONE}, and 1 of them have others" in warning
    assert "idle: 1 c-4 of NodePool pool" in warning


@pytest.mark.parametrize("policy", [{"basic": {}}, {"gang": {"minCount": 2}}])
def test_a_group_in_one_zone_is_not_warned_about(policy):
    assert _report(*_members(UPSTREAM, 2), node_pool(), groups=[_in_one_zone(policy)]).warnings == ()


def test_pods_of_a_gang_that_have_ended_do_not_count():
    ended_pod = pod("train-1", node="gone", status={"phase": "Failed"}, schedulingGroup={"podGroupName": "train"})
    (warning,) = _report(*_members(UPSTREAM, 1), ended_pod, node_pool(), groups=[group(UPSTREAM, 2)]).warnings
    assert "only 1 of the 2 pods that it needs exist" in warning
