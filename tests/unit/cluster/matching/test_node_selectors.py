"""One node and many rows are matched alike."""

from __future__ import annotations

from typing import Any

import pytest

from podium.cluster.matching.node_selectors import row_selector
from tests.builders import node, pod, snapshot_of

NODES = snapshot_of(
    node("a", labels={"zone": "1", "gen": "7"}),
    node("b", labels={"zone": "2", "gen": "10"}),
    node("c", labels={"zone": ""}),
    node("d"),
)


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def affinity_of(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


@pytest.mark.parametrize(
    ("selector", "affinity", "names"),
    [
        ({}, None, "abcd"),
        ({"zone": "1"}, None, "a"),
        ({"zone": ""}, None, "c"),
        ({"zone": "1", "gen": "10"}, None, ""),
        ({}, affinity_of(), ""),
        ({}, affinity_of({}), ""),
        ({}, affinity_of({"matchExpressions": [expression("gen", "Gt", "7")]}), "b"),
        ({}, affinity_of({"matchExpressions": [expression("zone", "NotIn", "1")]}), "bcd"),
        ({}, affinity_of({"matchFields": [expression("metadata.name", "In", "d")]}), "d"),
        ({}, affinity_of({"matchFields": [expression("metadata.name", "NotIn", "d")]}), "abc"),
        ({}, affinity_of({"matchFields": [expression("metadata.name", "In", "gone")]}), ""),
        ({"gen": "7"}, affinity_of({"matchExpressions": [expression("zone", "Exists")]}), "a"),
        (
            {},
            affinity_of(
                {"matchExpressions": [expression("gen", "Gt", "many")]},
                {"matchExpressions": [expression("zone", "In", "2")]},
            ),
            "b",
        ),
    ],
)
def test_rows_match_as_each_node_does(selector: dict[str, str], affinity: Any, names: str) -> None:
    selector_rows = row_selector(pod(affinity=affinity, spec={"nodeSelector": selector}).spec)
    rows = NODES.order[::-1]
    by_row = {
        NODES.name(row) for row, matches in zip(rows, selector_rows.matching(NODES, rows), strict=True) if matches
    }
    by_node = {node.name for row in rows if selector_rows.matches((node := NODES.node(row)).labels, node.name)}
    assert by_row == by_node == set(names)
    assert selector_rows.everything is (names == "abcd")
