"""NodePools that nodes can be bought from, and their order."""

from __future__ import annotations

import pytest

from podium.provisioner.apis.labels import WELL_KNOWN
from podium.provisioner.cloudprovider.instance_type_filter import InstanceTypeFilter
from podium.provisioner.provisioning.templates import Template, template_of, usable_pools
from podium.provisioner.state.reading import read_objects
from tests.unit.provisioner.clusters import Document, catalogue, node_pool, requirement

TYPES = catalogue().instance_types
ARCH = "kubernetes.io/arch"


def usable(*pools: Document) -> list[str]:
    return [usable_pool.metadata.name for usable_pool in usable_pools(read_objects(pools).node_pools)]


def template(pool: Document) -> Template | str:
    (node_pool,) = read_objects([pool]).node_pools
    return template_of(node_pool, InstanceTypeFilter(TYPES, WELL_KNOWN), lower_min_values=False)


def test_pools_are_tried_by_weight_then_from_the_last_name_on() -> None:
    assert usable(node_pool("a"), node_pool("b"), node_pool("c", weight=1), node_pool("d", weight=5)) == list("dcba")


def test_pools_that_cannot_be_bought_from_are_left_out() -> None:
    leaving = node_pool("leaving")
    leaving["metadata"]["deletionTimestamp"] = "2026-05-01T00:00:00Z"
    other_pool = node_pool("other")
    other_pool["spec"]["template"]["spec"]["nodeClassRef"]["kind"] = "EC2NodeClass"
    assert usable(leaving, other_pool, node_pool("static", replicas=1), node_pool("down", ready=False)) == []


@pytest.mark.parametrize("missing", ["ValidationSucceeded", "NodeClassReady", "Ready"])
def test_a_condition_that_is_absent_is_unknown(missing: str) -> None:
    pool = node_pool()
    pool["status"]["conditions"] = [
        condition for condition in pool["status"]["conditions"] if condition["type"] != missing
    ]
    assert usable(pool) == []


def test_a_template_has_the_types_that_meet_the_pools_requirements() -> None:
    pool_template = template(node_pool(requirements=[requirement(ARCH, "In", "arm64")], labels={"team": "x"}))
    assert isinstance(pool_template, Template)
    assert [instance_type.name for instance_type in pool_template.instance_types] == ["arm"]
    assert pool_template.requirements.get("team").values == {"x"}
    assert pool_template.requirements.get("karpenter.sh/initialized").values == {"true"}


def test_a_pool_without_types_is_skipped_with_the_reason() -> None:
    text = "NodePool requirements filtered out all compatible available instance types"
    assert template(node_pool(requirements=[requirement(ARCH, "In", "riscv")])) == text
    too_many = requirement("node.kubernetes.io/instance-type", "Exists", minValues=4)
    assert template(node_pool(requirements=[too_many])) == f"{text} due to minValues incompatibility"
