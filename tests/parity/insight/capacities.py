"""How many copies of a pod fit: that many are placed by kube-scheduler's own code, and one more is not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import orjson

from podium.engine.configurations import Configurations
from podium.engine.manifests import read_manifest
from podium.engine.recorded_questions import RecordedQuestion
from podium.insight.cluster import Cluster
from podium.objects.resource_types import PODS
from podium.plugins import IN_TREE
from tests.parity.cross import recorder
from tests.parity.cross.drawing import Json

COPIES_MAX = 150


@dataclass(slots=True)
class Outcome:
    """Of all clusters."""

    question_count: int = 0
    copies: int = 0
    wrong: list[str] = field(default_factory=list)


def capacities(scenarios: Iterable[Json], count: int) -> Iterator[tuple[Json, int]]:
    """The first scenarios in which few enough copies of the pod fit, each as a queue of one copy more than fit."""
    configurations = Configurations(IN_TREE)
    return islice(
        (question for scenario in scenarios if (question := _question_of(scenario, configurations)) is not None), count
    )


def _question_of(scenario: Json, configurations: Configurations) -> tuple[Json, int] | None:
    spec, meta = scenario["pod"]["spec"], scenario["pod"]["metadata"]
    if spec.get("nodeName"):
        return None
    pod = {
        "metadata": {name: value for name, value in meta.items() if name != "uid"},
        "spec": {**spec, "preemptionPolicy": "Never"},
    }
    store = RecordedQuestion(objects=scenario["objects"]).store()
    cluster = Cluster(configurations.of(scenario["config"]), store, IN_TREE)
    fits = cluster.capacity(read_manifest(pod, PODS), most=COPIES_MAX).fits
    if fits == COPIES_MAX:
        return None
    copies = [
        {**pod, "metadata": {**pod["metadata"], "name": f"copy-{number}", "uid": f"copy-{number}"}}
        for number in range(fits + 1)
    ]
    return {**scenario, "pod": None, "pods": copies}, fits


def check_capacities(questions: Iterable[tuple[Json, int]], binary: Path, directory: Path) -> Outcome:
    """Ask kube-scheduler's code to place one copy more than podium says fit."""
    outcome = Outcome()
    path = directory / "capacities.jsonl"
    fit_counts = []
    with path.open("wb") as lines:
        for question, fits in questions:
            lines.write(orjson.dumps({name: value for name, value in question.items() if name != "pod"}) + b"\n")
            fit_counts.append((question["id"], fits))
    for (name, fits), answer in zip(fit_counts, recorder.answers(binary, path), strict=True):
        are_placed = [bool(placement.get("node")) for placement in answer.get("placements") or ()]
        outcome.question_count += 1
        outcome.copies += fits
        if are_placed != [True] * fits + [False]:
            outcome.wrong.append(f"{name}: {fits} should fit: {answer.get('error') or are_placed}")
    return outcome
