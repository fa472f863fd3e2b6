"""What another configuration would have come to; with the recorded one, that is what was recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.recording.counterfactual import Counterfactual, replay_counterfactually
from podium.recording.timeline import UtilizationRecorder
from tests.simulation.calm import record_calm
from tests.simulation.observed import PLUGINS, configuration, have_calm_read
from tests.simulation.simulation import simulate
from tests.virtual_time import START_S

pytestmark = pytest.mark.usefixtures("no_log")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory, no_log: None) -> Path:
    directory = tmp_path_factory.mktemp("recorded") / "life"
    record_calm(directory)
    return directory


def decide_again(directory: Path, plugins: str = "") -> Counterfactual:
    return replay_counterfactually(directory, configuration(plugins), PLUGINS, prepare=have_calm_read)


def placements(counterfactual: Counterfactual) -> dict[str, str]:
    return {uid: story.node for uid, story in counterfactual.stories.items() if story.bound_s is not None}


def test_recorded_configuration_places_every_pod_as_recorded(directory: Path) -> None:
    counterfactual = decide_again(directory)
    assert placements(counterfactual) == counterfactual.recorded_nodes
    assert counterfactual.outcomes.placed > 40
    assert counterfactual.outcomes.preemptions > 0


def test_utilization_recorder_sees_all_bindings(directory: Path) -> None:
    utilization = UtilizationRecorder([profile.scheduler_name for profile in configuration().profiles])
    counterfactual = replay_counterfactually(
        directory, configuration(), PLUGINS, utilization=utilization, prepare=have_calm_read
    )
    timeline = utilization.timeline(counterfactual.started_s)
    assert timeline.started_s is not None
    assert START_S <= timeline.started_s < START_S + 10
    assert timeline.bound_count == counterfactual.outcomes.placed
    assert timeline.pending[-1] == counterfactual.outcomes.pending
    assert len(timeline.nodes) == 6
    assert counterfactual.outcomes == decide_again(directory).outcomes


def test_other_configuration_is_carried_to_the_end(directory: Path) -> None:
    counterfactual = decide_again(directory, 'score: {disabled: [{name: "*"}], enabled: [{name: ImageLocality}]}')
    second = decide_again(directory, 'score: {disabled: [{name: "*"}], enabled: [{name: ImageLocality}]}')
    assert placements(counterfactual) != counterfactual.recorded_nodes
    assert counterfactual.outcomes.placed + counterfactual.outcomes.pending > 40
    assert (counterfactual.outcomes, counterfactual.stories) == (second.outcomes, second.stories)


def test_recording_with_faults_and_all_kinds_of_pods_is_carried_to_the_end(tmp_path: Path) -> None:
    assert simulate(3, 40, recorded_to=tmp_path).violation is None
    for life in sorted(tmp_path.iterdir()):
        assert decide_again(life, "score: {enabled: [{name: NodeResourcesFit, weight: 90}]}").outcomes.attempts > 0
