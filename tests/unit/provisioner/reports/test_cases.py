"""Recorded questions."""

from __future__ import annotations

import pytest

from podium.objects.errors import FieldError
from podium.provisioner.reports.cases import Cases, read_settings
from tests.unit.provisioner.clusters import TYPES, ZONE, node_pool, pod

NOW = "2026-06-01T12:00:00Z"
QUESTION = {"id": "a-1", "kind": "solve", "now": NOW, "catalogue": "few", "objects": [node_pool(), pod("a")]}


def test_a_catalogue_serves_the_questions_after_it() -> None:
    cases = Cases()
    assert cases.answer({"catalogue": "few", "instanceTypes": list(TYPES)}) is None
    answer = cases.answer(QUESTION)
    assert answer is not None
    assert (answer["id"], len(answer["claims"])) == ("a-1", 1)


def test_a_question_may_bring_its_own_catalogue() -> None:
    answer = Cases().answer({**QUESTION, "instanceTypes": [TYPES[1]]})
    assert answer is not None
    assert answer["claims"][0]["types"] == ["default"]


def test_a_question_may_be_which_nodes_may_go() -> None:
    answer = Cases().answer({**QUESTION, "kind": "consolidate", "instanceTypes": list(TYPES)})
    assert answer is not None
    assert {"id", "methods", "budgets"} <= answer.keys()


@pytest.mark.parametrize("change", [{"catalogue": "other"}, {"kind": "guess"}, {"now": "soon"}])
def test_a_question_that_cannot_be_answered_is_refused(change: dict[str, str]) -> None:
    with pytest.raises(FieldError):
        Cases().answer({**QUESTION, **change})


def test_settings_are_those_of_karpenter() -> None:
    default = read_settings({})
    assert (default.ignore_preferences, default.lower_min_values, default.uses_reservations) == (False, False, True)
    rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
    settings = read_settings(
        {
            "preferencePolicy": "Ignore",
            "minValuesPolicy": "BestEffort",
            "featureGates": {
                "ReservedCapacity": False,
                "SpotToSpotConsolidation": True,
                "TerminateFirstDrift": True,
                "PodDeletionCostManagement": True,
            },
            "schedulerConfig": {"podTopologySpread": {"defaultConstraints": [rule]}},
        }
    )
    assert (settings.ignore_preferences, settings.lower_min_values, settings.uses_reservations) == (True, True, False)
    assert (settings.replaces_spot_with_spot, settings.terminates_first, settings.reads_deletion_cost) == (
        True,
        True,
        False,
    )
    assert (default.replaces_spot_with_spot, default.terminates_first, default.reads_deletion_cost) == (
        False,
        False,
        True,
    )
    assert [constraint.topology_key for constraint in settings.default_constraints] == [ZONE]


def test_a_gate_that_is_neither_on_nor_off_is_refused() -> None:
    with pytest.raises(FieldError, match=r"settings\.featureGates\[ReservedCapacity\].*neither true nor false"):
        read_settings({"featureGates": {"ReservedCapacity": "false"}})


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(FieldError, match="Never"):
        read_settings({"preferencePolicy": "Never"})
