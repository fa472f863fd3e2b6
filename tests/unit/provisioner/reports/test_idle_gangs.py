"""Gangs that a plan by Karpenter's rules buys nodes for in vain."""

import pytest

from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.reports.idle_gangs import groups_in
from podium.provisioner.reports.plan import PlanReport
from podium.provisioner.state.reading import read_objects
from podium.provisioner.state.settings import Settings
from tests.gang_manifests import COSCHEDULING, LABEL, UPSTREAM, group
from tests.unit.provisioner.clusters import NOW, catalogue, instance_type, node_pool, pod

TYPES = (instance_type("c-4", 4, "8Gi"),)


def _members(kind: str, count: int):
    if kind == COSCHEDULING:
        return [pod(f"train-{index}", cpu="3", labels={LABEL: "train"}) for index in range(count)]
    return [pod(f"train-{index}", cpu="3", schedulingGroup={"podGroupName": "train"}) for index in range(count)]


def _report(*objects, groups=()) -> PlanReport:
    basis = PlanBasis(read_objects(objects), catalogue(*TYPES), Settings())
    return PlanReport.by_karpenter(basis, NOW, groups=groups_in(groups))


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
