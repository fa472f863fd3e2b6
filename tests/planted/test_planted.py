"""Some of the planted differences; `python -m tests.planted` tries all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.planted.check import check
from tests.planted.plants import plants

pytestmark = pytest.mark.usefixtures("no_log")

PLANTS = {plant.name: plant for plant in plants()}
SAMPLE = (
    "weight 9 of InterPodAffinity",
    "no filter NodePorts",
    "no preemption",
    "no gates",
    "added affinity",
    "90 % of nodes",
    "plugin Picky",
    "a label of another value",
    "the label that a pod waits for is on another node",
    "a life that ends earlier",
)


@pytest.mark.parametrize("name", SAMPLE)
def test_planted_difference_is_named(name: str, tmp_path: Path) -> None:
    assert check(PLANTS[name], tmp_path) == []


def test_there_are_fifty_planted_differences() -> None:
    assert len(PLANTS) >= 50
