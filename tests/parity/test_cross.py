"""Some questions that were never recorded, answered by upstream's own code and by podium; `make parity` asks many."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.control_plane.locate import Binaries
from tests.control_plane.requirement import built_or_skipped
from tests.parity.cross import recorder
from tests.parity.cross.__main__ import outcomes
from tests.parity.cross.comparison import Keeping, compare_answers
from tests.parity.recorded import SCENARIOS, scenarios

COUNTS = {
    "scenarios": 60,
    "sequences": 4,
    "changes": 60,
    "devices": 40,
    "device changes": 40,
    "selectors": 400,
    "pod groups": 40,
    "configurations": 10,
}
SEED = 1


@pytest.fixture(scope="module")
def recorder_binary(pytestconfig: pytest.Config) -> Path:
    """The recorder; built on first use, which takes seconds where the control plane was built."""
    return built_or_skipped(pytestconfig, "recorder", recorder.obtain)


@pytest.mark.control_plane
def test_podium_answers_new_questions_as_upstream_does(
    recorder_binary: Path, control_plane_binaries: Binaries, tmp_path: Path
) -> None:
    keeping = Keeping(tmp_path / "kept")
    outcome_by_kind = dict(outcomes(SEED, COUNTS, recorder_binary, control_plane_binaries["kube-scheduler"], keeping))
    assert [difference for outcome in outcome_by_kind.values() for difference in outcome.differing] == []
    assert {name: outcome.question_count for name, outcome in outcome_by_kind.items()} == COUNTS


@pytest.mark.control_plane
def test_question_that_the_recorder_cannot_answer_counts_as_different(recorder_binary: Path, tmp_path: Path) -> None:
    scenario = {**scenarios(SCENARIOS)[0][0], "id": "nonsense-1"}
    scenario["objects"] = [*scenario["objects"], *scenario["objects"]]
    outcome = compare_answers([scenario], recorder_binary, tmp_path / "asked", Keeping(tmp_path))
    assert (outcome.question_count, outcome.alike) == (1, 0)
    assert outcome.differing[0].lines[0].startswith("failed: expected ")
