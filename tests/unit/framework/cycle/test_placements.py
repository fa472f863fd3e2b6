from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from podium.cluster import Snapshot
from podium.cluster.pod_groups import PodGroupState
from podium.framework.contract.placements import PlacementGeneratePlugin, PlacementScorePlugin
from podium.framework.contract.pod_groups import Placement, ProposedGroup
from podium.framework.contract.status import Status, unschedulable
from podium.framework.cycle.placements import best_placement, generate_placements
from podium.lib.clock import ManualClock
from tests.builders import node, snapshot_of

OUT_OF_RANGE = (
    'applying score defaultWeights on PlacementScore plugins: plugin "Scorer" returns an invalid score 101, it should '
    "in the range of [0, 100] after normalizing"
)
SNAPSHOT = snapshot_of(node("n1"), node("n2"))


class Profile:
    """The part of a profile that placements use."""

    def __init__(self, *generators: Any, scorers: Sequence[tuple[Any, int]] = ()) -> None:
        self.placement_generate, self.placement_scorers = generators, scorers
        self.clock = ManualClock()
        self.observations: list[tuple[str, str]] = []

    def observe(self, point: str, status: Status | None, started_s: float) -> None:
        self.observations.append((point, "Success" if status is None else status.code.label))


class Generator(PlacementGeneratePlugin):
    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def generate_placements(
        self, key: str, state: PodGroupState, snapshot: Snapshot
    ) -> tuple[Sequence[Placement], Status | None]:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer  # type: ignore[no-any-return]


class Scorer(PlacementScorePlugin):
    def __init__(self, **scores: int) -> None:
        self._scores = scores

    def score_placement(self, group: ProposedGroup, snapshot: Snapshot) -> int:
        return self._scores[group.placement.name]


def proposals(*names: str) -> list[ProposedGroup]:
    return [ProposedGroup(PodGroupState(), Placement(name, np.arange(1)), ()) for name in names]


def generate(*generators: Any) -> Any:
    placements, status = generate_placements(Profile(*generators), "default/g", PodGroupState(), SNAPSHOT)  # type: ignore[arg-type]
    return status.message if status is not None else [placement.rows.tolist() for placement in placements]


def best(*scorers: tuple[Any, int]) -> Any:
    best_group = best_placement(Profile(scorers=scorers), proposals("a", "b"), SNAPSHOT)  # type: ignore[arg-type]
    return best_group.message if isinstance(best_group, Status) else best_group


def test_without_a_generator_all_nodes_are_one_placement() -> None:
    assert generate() == [SNAPSHOT.order.tolist()]


def test_the_generators_answer_counts() -> None:
    assert generate(Generator(([Placement("a", np.array([1]))], None))) == [[1]]
    assert generate(Generator(((), unschedulable("no")))) == "no"
    assert generate(Generator(((), None))) == "no feasible placements found"
    assert generate(Generator(ValueError("x"))) == 'running PlacementGenerate plugin "Generator": ValueError: x'


def test_the_weighted_sum_decides_and_the_first_of_equals_wins() -> None:
    assert best((Scorer(a=10, b=20), 1)) == 1
    assert best((Scorer(a=10, b=20), 1), (Scorer(a=6, b=0), 2)) == 0
    assert best((Scorer(a=5, b=5), 1)) == best() == 0


@pytest.mark.parametrize(
    ("scores", "problem"),
    [
        ({"a": 1}, "running PlacementScore plugins: plugin \"Scorer\" failed with: KeyError: 'b'"),
        ({"a": 101, "b": 0}, OUT_OF_RANGE),
    ],
)
def test_a_failing_scorer_is_named(scores: dict[str, int], problem: str) -> None:
    assert best((Scorer(**scores), 1)) == problem


def test_both_extension_points_are_measured() -> None:
    profile: Any = Profile(Generator(([], None)), scorers=[(Scorer(a=1, b=101), 1)])
    generate_placements(profile, "default/g", PodGroupState(), SNAPSHOT)
    best_placement(profile, proposals("a", "b"), SNAPSHOT)
    assert profile.observations == [("PlacementGenerate", "Unschedulable"), ("PlacementScore", "Error")]
