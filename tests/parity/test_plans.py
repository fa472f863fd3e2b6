"""500 clusters: podium buys and removes the nodes that Karpenter 1.15.0 buys and removes, for the same reasons."""

from __future__ import annotations

import copy
from collections import Counter

import pytest

from podium.provisioner.reports.cases import CONSOLIDATE, SOLVE
from tests.parity.plans import differences_of, rows, rows_with_answers


@pytest.mark.parametrize("kind", [SOLVE, CONSOLIDATE])
def test_every_recorded_cluster_is_planned_as_karpenter_plans_it(kind: str):
    original_rows = copy.deepcopy(rows())
    differing = [difference for row, answer in rows_with_answers(kind) for difference in differences_of(row, answer)]
    assert differing == []
    assert rows() == original_rows, "planning changed the question"


@pytest.mark.parametrize(("kind", "clusters", "categories"), [(SOLVE, 300, 19), (CONSOLIDATE, 200, 12)])
def test_all_kinds_of_clusters_are_there(kind: str, clusters: int, categories: int):
    kinds = Counter(row["id"].rpartition("-")[0] for row in rows() if row.get("kind") == kind)
    assert sum(kinds.values()) == clusters
    assert len(kinds) == categories


def test_a_wrong_plan_is_noticed():
    row, answer = next((row, answer) for row, answer in rows_with_answers(SOLVE) if answer.get("claims"))
    answer["claims"][0]["types"] = answer["claims"][0]["types"][1:]
    assert differences_of(row, answer)


def test_a_wrong_command_is_noticed():
    row, answer = next((row, answer) for row, answer in rows_with_answers(CONSOLIDATE) if answer["nodes"])
    next(iter(answer["nodes"].values()))["decision"] = "something else"
    assert differences_of(row, answer)
