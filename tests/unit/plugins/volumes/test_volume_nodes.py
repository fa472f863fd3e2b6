from __future__ import annotations

from typing import Any

import pytest

from podium.plugins.volumes.volume_nodes import node_affinity_of
from tests.builders import node, snapshot_of
from tests.unit.plugins.storage import ZONE, volume

DISK = "disk"


@pytest.mark.parametrize(
    ("reach", "only"),
    [
        ({ZONE: ["a"]}, (ZONE, "a")),
        ({ZONE: ["a", "b"]}, None),
        ({ZONE: ["a"], DISK: ["ssd"]}, None),
    ],
)
def test_a_volume_in_one_place_requires_one_label_only(reach: Any, only: Any) -> None:
    affinity = node_affinity_of(volume(reach=reach))
    assert affinity is not None
    assert affinity.only_label == only


def test_one_of_several_terms_is_not_all_that_is_required() -> None:
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [value]}]} for value in "ab"]
    affinity = node_affinity_of(volume(nodeAffinity={"required": {"nodeSelectorTerms": terms}}))
    assert affinity is not None
    assert affinity.only_label is None


def test_all_rows_are_looked_at_as_each_by_itself() -> None:
    snapshot = snapshot_of(*(node(name, labels={ZONE: name}) for name in "abc"), node("none"))
    affinity = node_affinity_of(volume(reach={ZONE: ["a", "c"]}))
    assert affinity is not None
    matching = affinity.matching(snapshot, snapshot.order).tolist()
    assert matching == [affinity.matches(snapshot.node(row).labels) for row in snapshot.order.tolist()]
    assert sum(matching) == 2
