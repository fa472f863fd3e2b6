"""Whole workloads fit where podium says; `python -m tests.parity.fleets` asks about many more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.control_plane.requirement import built_or_skipped
from tests.parity.cross import recorder
from tests.parity.cross.comparison import Keeping, recorded_questions
from tests.parity.fleets import check_fleets, random_fleets
from tests.parity.recorded import DEVICES, SCENARIOS

FLEETS = 25


@pytest.mark.control_plane
def test_every_pod_is_placed_in_the_clusters_that_are_named_and_in_no_other(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    binary = built_or_skipped(pytestconfig, "recorder", recorder.obtain)
    fleets = random_fleets(recorded_questions(SCENARIOS), 1, FLEETS, recorded_questions(DEVICES))
    outcome = check_fleets(fleets, binary, tmp_path, Keeping(tmp_path / "kept"))
    assert outcome.wrong == outcome.unanswered == []
    assert outcome.fleet_count == FLEETS
    assert FLEETS / 5 < outcome.fitting_count < FLEETS
