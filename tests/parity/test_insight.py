"""Fixes and capacities hold for kube-scheduler's own code; `python -m tests.parity.insight` asks about many more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.control_plane.requirement import built_or_skipped
from tests.parity.cross import recorder
from tests.parity.cross.comparison import recorded_questions
from tests.parity.cross.scenarios import crossed_scenarios
from tests.parity.insight.capacities import capacities, check_capacities
from tests.parity.insight.fixes import check_fixes, infeasible
from tests.parity.recorded import SCENARIOS

EVERY, CROSSED, CAPACITIES = 5, 15, 40
"""The command asks about all recorded pods, and about hundreds of others."""

SETS_MAX = 500


@pytest.fixture(scope="module")
def recorder_binary(pytestconfig: pytest.Config) -> Path:
    """kube-scheduler's own packages; built on first use."""
    return built_or_skipped(pytestconfig, "recorder", recorder.obtain)


@pytest.mark.control_plane
def test_edited_pods_fit_where_fixes_say_and_no_part_of_the_edits_is_enough(
    recorder_binary: Path, tmp_path: Path
) -> None:
    recordings = recorded_questions(SCENARIOS)[::EVERY]
    outcome = check_fixes(infeasible(recordings, len(recordings)), recorder_binary, tmp_path, 0)
    assert outcome.wrong == []
    assert outcome.question_count > 40
    assert outcome.fixed_count > 0.8 * outcome.question_count
    assert outcome.sets > outcome.question_count


@pytest.mark.control_plane
def test_fixes_of_new_pods_are_true_and_no_smaller_set_is_enough(recorder_binary: Path, tmp_path: Path) -> None:
    crossed = crossed_scenarios(recorded_questions(SCENARIOS), 1, CROSSED * 10)
    outcome = check_fixes(infeasible(crossed, CROSSED), recorder_binary, tmp_path, SETS_MAX)
    assert outcome.wrong == []
    assert outcome.question_count == CROSSED
    assert outcome.searched > CROSSED / 2


@pytest.mark.control_plane
def test_as_many_copies_are_placed_as_the_capacity_says(recorder_binary: Path, tmp_path: Path) -> None:
    outcome = check_capacities(
        capacities(recorded_questions(SCENARIOS)[::EVERY], CAPACITIES), recorder_binary, tmp_path
    )
    assert outcome.wrong == []
    assert outcome.question_count == CAPACITIES
    assert outcome.copies > CAPACITIES
