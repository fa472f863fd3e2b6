"""Scores by the share of storage that a pod's claims would use, in both forms."""

from __future__ import annotations

from typing import Any

import pytest

from podium.config.args import UtilizationShapePoint, VolumeBindingArgs
from podium.framework.contract.status import SKIP
from podium.objects.core import Pod
from tests.builders import node
from tests.unit.plugins.storage import ZONE, VolumePluginBench, capacity, claim, csi_driver, storage_class, user, volume

EMPTIEST = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
FULLEST = (UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10))


def scores(*items: Any, wanting: Pod, shape: tuple[UtilizationShapePoint, ...] = EMPTIEST) -> dict[str, int]:
    """The scores by node; those of one node and those of many have to agree."""
    nodes = [node(name, labels={ZONE: name}) for name in ("a", "b")]
    bench = VolumePluginBench("VolumeBinding", *nodes, *items, args=VolumeBindingArgs(shape=shape))
    bench.pre_filter(wanting)
    rows = bench.snapshot.order
    assert bench.plugin.pre_score(bench.state, wanting, bench.snapshot, rows) is None
    column = bench.plugin.score_rows(bench.state, wanting, bench.snapshot, rows).tolist()
    assert column == [bench.plugin.score(bench.state, wanting, bench.snapshot.node(int(row))) for row in rows]
    return dict(zip(map(bench.snapshot.name, rows), column, strict=True))


def left(size: str, zone: str, name: str = "slow") -> Any:
    return capacity(f"{name}-{zone}", storage_class=name, on={ZONE: zone}, size=size)


def test_a_node_with_more_capacity_left_gets_more() -> None:
    items = storage_class(), csi_driver(), claim(size="10Gi"), left("100Gi", "a"), left("20Gi", "b")
    assert scores(*items, wanting=user("data")) == {"a": 90, "b": 50}


def test_the_shape_may_prefer_the_fullest() -> None:
    items = storage_class(), csi_driver(), claim(size="10Gi"), left("100Gi", "a"), left("20Gi", "b")
    assert scores(*items, wanting=user("data"), shape=FULLEST) == {"a": 10, "b": 50}


def test_claims_of_one_class_share_its_capacity() -> None:
    claims = claim("one", size="10Gi"), claim("two", size="30Gi")
    items = storage_class(), csi_driver(), *claims, left("100Gi", "a"), left("50Gi", "b")
    assert scores(*items, wanting=user("one", "two")) == {"a": 60, "b": 20}


def test_classes_count_equally() -> None:
    claims = claim("one", size="10Gi"), claim("two", size="50Gi", storage_class="fast")
    items = storage_class(), storage_class("fast"), csi_driver(), *claims
    items = *items, *(left("100Gi", zone, name) for zone in "ab" for name in ("slow", "fast"))
    assert scores(*items, wanting=user("one", "two")) == {"a": 70, "b": 70}


def test_a_volume_that_is_chosen_counts_instead_of_capacity() -> None:
    bound_here = volume(size="20Gi", reach={ZONE: ["a"]})
    items = storage_class(), csi_driver(), claim(size="10Gi"), bound_here, left("100Gi", "a"), left("100Gi", "b")
    assert scores(*items, wanting=user("data")) == {"a": 50, "b": 90}


def test_the_smallest_volume_that_is_large_enough_counts_on_each_node() -> None:
    sizes = {"small": ("5Gi", "a"), "snug": ("20Gi", "a"), "wide": ("40Gi", "a"), "far": ("40Gi", "b")}
    volumes = [volume(name, size=size, reach={ZONE: [zone]}) for name, (size, zone) in sizes.items()]
    anywhere = volume("anywhere", size="100Gi")
    items = storage_class(), claim(size="10Gi"), *volumes, anywhere
    assert scores(*items, wanting=user("data")) == {"a": 50, "b": 75}
    assert scores(storage_class(), claim(size="10Gi"), anywhere, *volumes[:2], wanting=user("data")) == {
        "a": 50,
        "b": 90,
    }


def test_a_volume_that_is_kept_for_the_claim_counts_before_smaller_ones() -> None:
    data = claim(size="10Gi")
    reserved_volume = volume("reserved", size="100Gi", reach={ZONE: ["a"]}, kept_for=data)
    free_volumes = [volume(f"free-{zone}", size="10Gi", reach={ZONE: [zone]}) for zone in "ab"]
    items = storage_class(), data, reserved_volume, *free_volumes
    assert scores(*items, wanting=user("data")) == {"a": 90, "b": 0}


def test_capacity_that_no_driver_publishes_does_not_count() -> None:
    assert scores(storage_class(), claim(), wanting=user("data")) == {"a": 0, "b": 0}


def test_a_pod_without_claims_gets_nothing_anywhere() -> None:
    assert scores(wanting=user()) == {"a": 0, "b": 0}


@pytest.mark.parametrize("wanting", [user(), user("data")])
def test_without_a_shape_nodes_are_not_scored(wanting: Pod) -> None:
    bench = VolumePluginBench("VolumeBinding", node("a"), storage_class(), claim(), args=VolumeBindingArgs())
    bench.pre_filter(wanting)
    assert bench.plugin.pre_score(bench.state, wanting, bench.snapshot, bench.snapshot.order) is SKIP
