"""300 clusters with waiting pods: podium buys the nodes that Karpenter 1.15.0 buys, and tells the same reasons."""

from __future__ import annotations

import copy
from collections import Counter

from podium.provisioner.cases import SOLVE
from tests.parity.plans import asked, differences_of, rows


def test_every_recorded_cluster_is_planned_as_karpenter_plans_it():
    differing = [each for row, answer in asked(SOLVE) for each in differences_of(row, answer)]
    assert differing == []


def test_all_kinds_of_clusters_are_there():
    kinds = Counter(row["id"].rpartition("-")[0] for row in rows() if row.get("kind") == SOLVE)
    assert sum(kinds.values()) == 300
    assert len(kinds) == 19


def test_planning_leaves_the_question_as_it_was():
    before = copy.deepcopy(rows())
    for _ in asked(SOLVE):
        pass
    assert rows() == before


def test_a_wrong_plan_is_noticed():
    row, answer = next((row, answer) for row, answer in asked(SOLVE) if answer.get("claims"))
    answer["claims"][0]["types"] = answer["claims"][0]["types"][1:]
    assert differences_of(row, answer)
