"""A seed equals its replay, with faults, preemption, permits, gates and devices; and a difference is named."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

import podium
from podium.lib import build
from podium.recording.entries import Decision
from podium.recording.hashed_names import NameHasher
from podium.recording.recorder import Recorder
from podium.recording.replay import ReplayResult, replay
from podium.recording.replay_window import ReplayWindow
from podium.recording.segments import RecordingError, open_segments
from tests.simulation import observed, random_objects
from tests.simulation.observed import PLUGINS, configuration, have_calm_read
from tests.simulation.recordings import replay_all
from tests.simulation.simulation import simulate
from tests.virtual_time import START_S

pytestmark = pytest.mark.usefixtures("no_log")

SEED, STEPS = 8, 60


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory, no_log: None) -> Path:
    directory = tmp_path_factory.mktemp("recorded")
    assert simulate(SEED, STEPS, recorded_to=directory).violation is None
    return directory


def assert_same(replays: list[ReplayResult]) -> None:
    for result in replays:
        assert result.is_same, result.outcome.divergence
        assert not result.damage
        assert result.summary()["digest"] == result.summary()["recorded_digest"]


def test_seed_equals_its_replay(directory: Path) -> None:
    (first,), (second,) = replay_all(directory), replay_all(directory)
    assert_same([first, second])
    assert first.summary()["digest"] == second.summary()["digest"]
    assert first.outcome.attempts > 50
    assert first.virtual_s > 100


@pytest.mark.parametrize(("seed", "devices", "gangs"), [(2, False, False), (3, True, False), (4, False, True)])
def test_other_seeds_equal_their_replays(seed: int, devices: bool, gangs: bool, tmp_path: Path) -> None:
    assert simulate(seed, 40, devices=devices, gangs=gangs, recorded_to=tmp_path).violation is None
    assert_same(replay_all(tmp_path, configuration(gangs=gangs)))


def test_recording_changes_no_history(directory: Path, tmp_path: Path) -> None:
    del directory
    assert simulate(SEED, 20, recorded_to=tmp_path).lines == simulate(SEED, 20).lines


def test_replay_ends_after_a_part_of_the_time(directory: Path) -> None:
    life = directory / "life-01"
    (complete,) = replay_all(directory)
    part = replay(life, configuration(), PLUGINS, window=ReplayWindow(seconds=30.0), prepare=have_calm_read)
    assert part.is_same
    assert 0 < part.outcome.attempts < complete.outcome.attempts
    assert part.virtual_s < 60.0 < complete.virtual_s
    end = ReplayWindow(wall_s=START_S + 30.0)
    assert replay(life, configuration(), PLUGINS, window=end, prepare=have_calm_read).virtual_s < 60.0


def test_recording_that_was_cut_replays_up_to_there(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "life").mkdir()
    content = (directory / "life-01/000001.podium").read_bytes()
    (tmp_path / "life/000001.podium").write_bytes(content[:-20])
    (result,) = replay_all(tmp_path)
    assert result.is_same
    assert result.is_cut
    assert "the block at byte" in result.damage


@pytest.mark.parametrize(("seed", "devices"), [(2, False), (3, True)])
def test_recording_with_hashed_names_replays_the_same_and_says_no_name(
    seed: int, devices: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A plugin that looks for a label finds it only under a key that stays.
    for module in (observed, random_objects):
        monkeypatch.setattr(module, "HESITANT", "hesitant.k8s.io/wait")
    monkeypatch.setattr(observed, "Recorder", partial(Recorder, hasher=NameHasher(b"secret")))
    simulate(seed, 40, devices=devices, recorded_to=tmp_path)
    replays = replay_all(tmp_path)
    assert_same(replays)
    assert sum(result.outcome.attempts for result in replays) > 20
    for life in tmp_path.iterdir():
        content = b"".join(open_segments(life).blocks())
        assert [text for text in (b"pod-1", b"node-1", b"simulation", b"default/") if text in content] == []


def test_recording_of_another_version_says_which_one_it_needs(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podium.__version__", "0.0.0")
    with pytest.raises(RecordingError, match=r"was recorded by podium .* replay it with podium"):
        replay_all(directory)


def test_recording_of_another_commit_is_replayed_and_names_both_commits_where_that_fails(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another commit may read the clocks less often, or decide otherwise: stood in for by another configuration."""
    (commit,) = {str(open_segments(life).description["commit"]) for life in directory.iterdir()}
    monkeypatch.setattr(build, "commit", lambda: "0123abcd")
    (result,) = replay_all(directory)
    assert_same([result])
    assert result.made_by == ""
    (result,) = replay_all(directory, configuration("score: {enabled: [{name: NodeResourcesFit, weight: 90}]}"))
    assert not result.is_same
    assert commit in result.made_by
    assert result.made_by.endswith(
        f"podium {podium.__version__} of commit 0123abcd, which does not repeat it: "
        "replay it with the podium that recorded it"
    )


@pytest.mark.parametrize(
    "plugins",
    [
        'score: {disabled: [{name: "*"}], enabled: [{name: ImageLocality}]}',
        "score: {enabled: [{name: NodeResourcesFit, weight: 90}]}",
        "filter: {disabled: [{name: NodeResourcesFit}]}",
    ],
)
def test_first_decision_that_another_configuration_makes_differently_is_named(plugins: str, directory: Path) -> None:
    (result,) = replay_all(directory, configuration(plugins), has_other_config=True)
    differing = result.outcome.divergence
    assert differing is not None
    assert isinstance(differing.recorded, Decision), differing
    assert isinstance(differing.replayed, Decision)
    assert differing.recorded.pod == differing.replayed.pod
    assert differing.recorded != differing.replayed
    assert differing.event
