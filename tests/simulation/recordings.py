"""Replays what the simulated podium recorded, one recording for each of its lives."""

from __future__ import annotations

from pathlib import Path

from podium.config import KubeSchedulerConfiguration
from podium.recording.replay import ReplayResult, replay
from tests.simulation.observed import PLUGINS, configuration, have_calm_read


def replay_all(
    directory: Path, config: KubeSchedulerConfiguration | None = None, *, has_other_config: bool = False
) -> list[ReplayResult]:
    """The replays of a seed's recordings, in order."""
    config = config or configuration()
    return [
        replay(life, config, PLUGINS, has_other_config=has_other_config, prepare=have_calm_read)
        for life in sorted(directory.iterdir())
    ]
