"""A seed equals its replay, with faults, preemption, permits, gates and devices; and a difference is named."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from podium.recording.replay import Replayed
from podium.recording.segments import RecordingError
from podium.recording.tape import Decided
from tests.simulation.observed import configuration
from tests.simulation.recordings import replay_all
from tests.simulation.simulation import simulate

SEED, STEPS = 3, 60


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, _quiet: None) -> Path:
    directory = tmp_path_factory.mktemp("recorded")
    assert simulate(SEED, STEPS, recorded_to=directory).violation is None
    return directory


def assert_same(replays: list[Replayed]) -> None:
    for each in replays:
        assert each.is_same, each.outcome.differing
        assert not each.damage
        assert each.summary()["digest"] == each.summary()["recorded_digest"]


def test_seed_equals_its_replay(recorded: Path) -> None:
    (first,), (second,) = replay_all(recorded), replay_all(recorded)
    assert_same([first, second])
    assert first.summary()["digest"] == second.summary()["digest"]
    assert first.outcome.attempts > 50
    assert first.virtual_s > 100


@pytest.mark.parametrize(("seed", "devices"), [(2, False), (3, True)])
def test_other_seeds_equal_their_replays(seed: int, devices: bool, tmp_path: Path) -> None:
    assert simulate(seed, 40, devices=devices, recorded_to=tmp_path).violation is None
    assert_same(replay_all(tmp_path))


def test_recording_changes_no_history(recorded: Path, tmp_path: Path) -> None:
    del recorded
    assert simulate(SEED, 20, recorded_to=tmp_path).lines == simulate(SEED, 20).lines


def test_recording_that_was_cut_replays_up_to_there(recorded: Path, tmp_path: Path) -> None:
    (tmp_path / "life").mkdir()
    content = (recorded / "life-01/000001.podium").read_bytes()
    (tmp_path / "life/000001.podium").write_bytes(content[:-20])
    (found,) = replay_all(tmp_path)
    assert found.is_same
    assert found.is_cut
    assert "the block at byte" in found.damage


def test_recording_of_another_version_says_which_one_it_needs(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podium.__version__", "0.0.0")
    with pytest.raises(RecordingError, match=r"was recorded by podium .* replay it with podium"):
        replay_all(recorded)


@pytest.mark.parametrize(
    "plugins",
    [
        'score: {disabled: [{name: "*"}], enabled: [{name: ImageLocality}]}',
        "score: {enabled: [{name: NodeResourcesFit, weight: 90}]}",
        "filter: {disabled: [{name: NodeResourcesFit}]}",
    ],
)
def test_first_decision_that_another_configuration_makes_differently_is_named(plugins: str, recorded: Path) -> None:
    (found,) = replay_all(recorded, configuration(plugins), is_other=True)
    differing = found.outcome.differing
    assert differing is not None
    assert isinstance(differing.recorded, Decided), differing
    assert isinstance(differing.replayed, Decided)
    assert differing.recorded.pod == differing.replayed.pod
    assert differing.recorded != differing.replayed
    assert differing.event
